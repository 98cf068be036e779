"""What a content search found, gathered record by record and told at the end.

Owns the meaning of records (ripgrep's JSON and lists) and the bounds on what is told. It does not run the
search.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from handrail.store.value import Json
from handrail.terminal.ripgrep import Ended
from handrail.tools.answer import brief, some
from handrail.tools.files.lines import WINDOW_MAX
from handrail.tools.search.seek import SECONDS

LINE_MAX = 500
"""Characters shown of a found line; read_file shows more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a finding."""

    path: str
    line: int
    text: str
    match: bool


@dataclass(slots=True)
class Findings:
    """Grows while the search runs."""

    mode: Literal["content", "files", "count"]
    limit: int
    path: Callable[[bytes], str | None]
    """From a found path to the one below the folder; None when it is not to be seen."""
    shown: Callable[[str], str]
    ended: Ended = field(default_factory=Ended)
    lines: list[Line] = field(default_factory=list[Line])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    total: int = 0
    full: bool = False
    _size: int = 0
    _begun: bytes = b""

    def take(self, record: bytes) -> bool:
        """Add a record; False when there is enough."""
        match self.mode:
            case "content":
                self._take_content(record)
            case "files":
                self._take_file(record, 1)
            case "count":
                self._take_count(record)
        return not self.full

    def told(self, where: str, pattern: str) -> tuple[str, Json]:
        """Text and data for a model."""
        data: Json = {"path": where, "total": self.total, "truncated": self._is_cut()}
        data["files"] = list(self.counts)
        match self.mode:
            case "content":
                data["lines"] = [asdict(line) for line in self.lines]
                rows = self._rows()
            case "files":
                rows = list(self.counts)
            case "count":
                data["counts"] = dict(self.counts)
                rows = [f"{count:>6} {path}" for path, count in self.counts.items()]
        none = [] if self.counts else [f"Nothing in {where} matches {brief(pattern, 60)}."]
        return "\n".join([*rows, *none, *self._notes()]), data

    def _take_content(self, record: bytes) -> None:
        event = json.loads(record)
        if event["type"] not in ("match", "context"):
            return
        data = event["data"]
        path = self._path(_raw(data["path"]))
        if path is not None:
            texts = _raw(data["lines"]).decode(errors="replace").removesuffix("\n").split("\n")
            for number, text in enumerate(texts, data["line_number"]):
                self._add(path, number, text.removesuffix("\r"), match=event["type"] == "match")

    def _add(self, path: str, number: int, text: str, *, match: bool) -> None:
        self.full = self.full or self._size > WINDOW_MAX or (match and self.total == self.limit)
        if self.full:
            return
        text = text if len(text) <= LINE_MAX else text[:LINE_MAX] + "…"
        self._size += len(text) + 20
        self.total += match
        self.lines.append(Line(path=path, line=number, text=text, match=match))
        self.counts[path] = self.counts.get(path, 0) + match

    def _take_count(self, record: bytes) -> None:
        """`path NUL count`; a path with a newline in it comes in pieces."""
        path, end, count = (self._begun + record).rpartition(b"\0")
        self._begun = b"" if end else self._begun + record + b"\n"
        if end:
            self._take_file(path, int(count))

    def _take_file(self, raw: bytes, count: int) -> None:
        path = self._path(raw)
        if path is None:
            return
        if self.total == self.limit:
            self.full = True
            return
        self.total += 1
        self.counts[path] = count

    def _path(self, raw: bytes) -> str | None:
        path = self.path(raw)
        return None if path is None else self.shown(path)

    def _rows(self) -> list[str]:
        """Lines under the name of their file, `12:` for a match and `13-` for context."""
        rows: list[str] = []
        last: Line | None = None
        for line in self.lines:
            if last is None or line.path != last.path:
                rows += [""] * (last is not None) + [line.path]
            elif line.line > last.line + 1 and not (last.match and line.match):
                rows.append("  --")
            rows.append(f"{line.line:>6}{':' if line.match else '-'} {line.text}")
            last = line
        return rows

    def _is_cut(self) -> bool:
        return self.full or self.ended.out_of_time or self.ended.too_long > 0

    def _notes(self) -> list[str]:
        notes: list[str] = []
        if self.full:
            noun = "matching line" if self.mode == "content" else "file"
            notes.append(
                f"[Stopped at {some(self.total, noun)}; there are more. Narrow the search, or raise max_results.]"
            )
        if self.ended.out_of_time:
            notes.append(
                f"[Stopped after {SECONDS:g} seconds; there may be more. Narrow it with path or file_pattern.]"
            )
        if self.ended.too_long:
            notes.append(f"[{some(self.ended.too_long, 'match')} in very long lines left out.]")
        return notes


def _raw(value: dict[str, Any]) -> bytes:
    """ripgrep gives text, or base64 of what is no text."""
    return base64.b64decode(value["bytes"]) if "bytes" in value else str(value["text"]).encode()
