"""Pieces: what `handrail connect` changes in clients' files, each found, made and undone by itself."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from handrail.clients.config_edit import (
    ABSENT,
    Format,
    Pointer,
    append_item,
    get_value,
    is_list,
    remove_item,
    remove_value,
    render_yaml,
    set_value,
)
from handrail.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPiece:
    """One member of an object, one item of a list, one whole file, or a member that is taken out (`absent`)."""

    path: Path
    kind: Literal["member", "item", "file", "absent"]
    format: Format
    pointer: Pointer = ()
    value: Any = None
    """For `file`: its text."""
    mode: int = 0o600
    """Of a file that is created."""
    add: tuple[str, ...] = ()
    """The client's own command that makes this change, where the client rewrites the file itself."""
    remove: tuple[str, ...] = ()

    def add_to(self, text: str) -> str:
        """The text with this piece; unchanged if it has it. Raises BadFile."""
        if self.is_in(text):
            return text
        match self.kind:
            case "file":
                return str(self.value)
            case "item":
                return append_item(self.format, text, self.pointer, self.value)
            case "member":
                return set_value(self.format, text, self.pointer, self.value)
            case "absent":
                return remove_value(self.format, text, self.pointer)

    def is_in(self, text: str) -> bool:
        """Whether the text has exactly this piece. Raises BadFile."""
        if self.kind == "file":
            return text == self.value
        current = get_value(self.format, text, self.pointer)
        if self.kind == "item":
            return is_list(current) and self.value in current
        if self.kind == "absent":
            return current is ABSENT
        return current == self._expected()

    def current(self, text: str) -> Any:
        """What stands where this piece belongs, or ABSENT. Raises BadFile."""
        if self.kind == "file":
            return text or ABSENT
        return get_value(self.format, text, self.pointer)

    def _expected(self) -> Any:
        if self.format != "yaml":
            return self.value
        return [line.strip() for line in render_yaml(self.pointer[-1], self.value)]

    @property
    def place(self) -> str:
        return f"{self.path} {'.'.join(self.pointer)}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A piece that was written, and what stood in its place before."""

    piece: ConfigPiece
    before: Any = ABSENT
    """The value of a member that was replaced or taken out."""
    depth: int = 0
    """How many keys of the pointer existed: the containers below them are ours, and go when they are empty."""

    @classmethod
    def over(cls, piece: ConfigPiece, text: str) -> Self:
        """What is to be remembered before the piece is added to this text."""
        before = piece.current(text) if piece.kind in ("member", "absent") else ABSENT
        depth = 0
        while depth < len(piece.pointer) and piece.kind != "file":
            if piece.format == "yaml":
                break
            if get_value(piece.format, text, piece.pointer[: depth + 1]) is ABSENT:
                break
            depth += 1
        return cls(piece=piece, before=before, depth=depth)

    def cut_from(self, text: str) -> str:
        """The text without the piece, or with what stood there before. Unchanged if the piece is not in it as we wrote it.
        Raises BadFile."""
        piece = self.piece
        if not piece.is_in(text):
            return text
        if piece.kind == "file":
            return ""
        if piece.kind == "item":
            text = remove_item(piece.format, text, piece.pointer, piece.value)
        elif self.before is not ABSENT:
            return set_value(piece.format, text, piece.pointer, self.before)
        else:
            text = remove_value(piece.format, text, piece.pointer)
        return text if piece.format == "yaml" else self._cut_containers(text)

    def _cut_containers(self, text: str) -> str:
        """Remove the objects and lists that were created for the piece and are empty now."""
        for length in range(len(self.piece.pointer), self.depth, -1):
            pointer = self.piece.pointer[:length]
            if get_value(self.piece.format, text, pointer) in ({}, []):
                text = remove_value(self.piece.format, text, pointer)
        return text

    def to_json(self) -> dict[str, Any]:
        fields = {**asdict(self.piece), "path": str(self.piece.path), "depth": self.depth}
        return fields if self.before is ABSENT else {**fields, "before": self.before}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        piece = ConfigPiece(
            path=Path(fields["path"]),
            kind=fields["kind"],
            format=fields["format"],
            pointer=tuple(fields["pointer"]),
            value=fields["value"],
            mode=fields["mode"],
            add=tuple(fields["add"]),
            remove=tuple(fields["remove"]),
        )
        return cls(piece=piece, before=fields.get("before", ABSENT), depth=fields["depth"])
