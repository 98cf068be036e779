"""Records of the text written for each client, and the originals of the changed files.

Both lie in Handrail's data folder, private to the user: originals may hold keys. They are deleted on disconnect.
"""

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from handrail.clients.config_file import FileProblem, digest_of, read_bytes, write_bytes
from handrail.clients.pieces import Written
from handrail.lazy_dataclass import dataclass

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One file that was changed."""

    path: Path
    original: str | None
    """Digest of the bytes before; None if there was no file."""
    written: str
    """Digest of the bytes after. While the file still has it, disconnect restores the original."""
    pieces: tuple[Written, ...]
    folders: tuple[Path, ...] = ()
    """Folders that were created for it."""

    def to_json(self) -> dict[str, Any]:
        pieces = [each.to_json() for each in self.pieces]
        folders = [str(each) for each in self.folders]
        own = {"path": str(self.path), "original": self.original, "written": self.written}
        return {**own, "pieces": pieces, "folders": folders}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        return cls(
            path=Path(fields["path"]),
            original=fields["original"],
            written=fields["written"],
            pieces=tuple(Written.from_json(each) for each in fields["pieces"]),
            folders=tuple(map(Path, fields["folders"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedServer:
    """An MCP server that was taken out of a client's file and is behind Handrail since."""

    name: str
    """In Handrail's configuration."""
    place: str
    """Of the client's entry, as `ConfigPiece.place` has it."""
    source: str
    """Digest of the client's entry."""
    entry: str
    """Digest of the entry in config.toml, as it was written."""
    secrets: tuple[str, ...]
    """Names of the secrets that were stored with it."""
    is_ours: bool
    """A move added it. If not, it was there before, and stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A client, or a client in one project, that is connected."""

    client: str
    scope: str
    project: str
    """Empty for the user's own configuration."""
    launcher: str
    version: str
    """Of the client, when it was connected."""
    has_mcp: bool
    has_hooks: bool
    is_locked: bool
    connected_at: str
    is_single_question: bool = False
    hook_timeout: int = 0
    """As in `connect --hook-timeout`; 0 for the longest."""
    servers: tuple[MovedServer, ...] = ()
    """MCP servers of the client that were moved behind Handrail."""
    files: tuple[FileRecord, ...] = ()

    @property
    def key(self) -> str:
        return connection_key(self.client, self.project, is_locked=self.is_locked)


def connection_key(client: str, project: str = "", *, is_locked: bool = False) -> str:
    return " ".join(part for part in (client, "locked" if is_locked else "", project) if part)


class Connections:
    """The records of one Handrail."""

    def __init__(self, data: Path) -> None:
        self.file = data / "connections.json"
        self.originals = data / "connections"

    @contextmanager
    def lock(self) -> Generator[None]:
        """Keep another command of this Handrail from changing records and files."""
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def all(self) -> list[Connection]:
        """Raises FileProblem if the records cannot be read: without them nothing may be removed."""
        data = read_bytes(self.file)
        if data is None:
            return []
        try:
            return [_from_json(fields) for fields in json.loads(data)["connections"]]
        except (ValueError, KeyError, TypeError) as problem:
            raise FileProblem(
                f"{self.file}, which records what was written for clients, cannot be read ({problem!r}). Put a backup in "
                "its place; or delete it, and remove Handrail's entries from the clients' files by hand."
            ) from None

    def find(self, key: str) -> Connection | None:
        return next((each for each in self.all() if each.key == key), None)

    def save(self, connection: Connection) -> None:
        self._write([*(each for each in self.all() if each.key != connection.key), connection])

    def delete(self, connection: Connection) -> None:
        self._write([each for each in self.all() if each.key != connection.key])
        kept = {file.original for each in self.all() for file in each.files}
        for file in connection.files:
            if file.original is not None and file.original not in kept:
                (self.originals / file.original).unlink(missing_ok=True)

    def keep_original(self, data: bytes | None) -> str | None:
        """Store the bytes of a file that is about to change; returns their digest."""
        if data is None:
            return None
        self.originals.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = digest_of(data)
        if not (self.originals / name).exists():
            write_bytes(self.originals / name, data, 0o600)
        return name

    def original(self, record: FileRecord) -> bytes | None:
        """The bytes before; None if there was no file, or if the copy is lost or damaged."""
        if record.original is None:
            return None
        data = read_bytes(self.originals / record.original)
        return data if data is not None and digest_of(data) == record.original else None

    def _write(self, connections: list[Connection]) -> None:
        rows = [_to_json(each) for each in sorted(connections, key=lambda each: each.key)]
        text = json.dumps({"format": FORMAT, "connections": rows}, indent=1)
        write_bytes(self.file, text.encode(), 0o600)


def _to_json(connection: Connection) -> dict[str, Any]:
    files = [file.to_json() for file in connection.files]
    return {**asdict(replace(connection, files=())), "files": files}


def _from_json(fields: Mapping[str, Any]) -> Connection:
    files = tuple(FileRecord.from_json(each) for each in fields["files"])
    moved = (
        replace(MovedServer(**each), secrets=tuple(each["secrets"])) for each in fields.get("servers", ())
    )
    later = {"is_single_question": False, "hook_timeout": 0}
    names = [name for name in Connection.__slots__ if name not in (*later, "servers", "files")]
    newer = {name: fields.get(name, default) for name, default in later.items()}
    return Connection(**{name: fields[name] for name in names}, **newer, servers=tuple(moved), files=files)
