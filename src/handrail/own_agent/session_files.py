"""Conversations on disk: one private JSON Lines file each, in one private folder.

Lines are only appended, except after compaction: then a new file atomically replaces the old one. A line that
a crash left incomplete is dropped. Files hold messages and settings, never keys. What messages mean is up to
history.py.
"""

import json
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.tools.agent_tool import CallDisplay, Json

VERSION = 1
HEAD_BYTES = 64 * 1024
"""Bytes read per file to build a list; the title is near the beginning. Bounds the cost of listing."""


@dataclass(slots=True, kw_only=True)
class Record:
    """The contents of a file, after all its lines are applied."""

    cwd: str = ""
    title: str = ""
    settings: dict[str, str] = field(default_factory=dict[str, str])
    messages: list[Json] = field(default_factory=list[Json])
    """As read from the file; empty after `taken` has handed them over."""
    shown: dict[str, CallDisplay] = field(default_factory=dict[str, CallDisplay])
    """How each call was displayed, by its id."""
    spent: str = ""
    """US dollars; empty if no price was known."""

    def take(self, line: Json) -> None:
        """Apply one line. Unknown fields, which a later version may write, are ignored."""
        self.cwd = line.get("cwd", self.cwd)
        self.title = line.get("title", self.title)
        self.spent = line.get("spent", self.spent)
        self.settings |= line.get("settings", {})
        self.messages += [line["message"]] if "message" in line else []
        for call, shown in line.get("shown", {}).items():
            self.shown[call] = CallDisplay(
                title=shown["title"], kind=shown["kind"], paths=tuple(shown["paths"])
            )


class NoSuchSession(Exception):
    """No conversation has this id, or its file cannot be read."""


class SessionFile:
    """The file of one conversation. Write errors do not raise: they set `problem`, and `replace` clears it."""

    def __init__(self, path: Path, record: Record) -> None:
        self._path, self.record = path, record
        self.problem: OSError | None = None
        """Why the file is incomplete; None if it is complete."""

    @classmethod
    def begun(cls, path: Path, cwd: str) -> "SessionFile":
        """Create the file of a new conversation. Raises OSError."""
        record = Record(cwd=cwd)
        with open(path, "xb", opener=_private) as file:
            file.writelines(map(_line, _lines(record, [])))
        return cls(path, record)

    @classmethod
    def found(cls, path: Path) -> "SessionFile":
        """Open an existing conversation. Raises NoSuchSession."""
        record = Record()
        try:
            for line in _read_lines(path):
                record.take(line)
        except (OSError, AttributeError, KeyError, TypeError):  # not our format, or damaged
            raise NoSuchSession from None
        if not record.cwd:
            raise NoSuchSession
        return cls(path, record)

    @property
    def id(self) -> str:
        return self._path.stem

    def taken(self) -> list[Any]:
        """Hand over the messages that were read. Raises NoSuchSession if they are not valid."""
        messages, self.record.messages = self.record.messages, []
        try:
            return _parse_messages(messages)
        except ValueError:
            raise NoSuchSession from None

    def title(self, title: str) -> None:
        self._add({"title": title})

    def set(self, name: str, value: str) -> None:
        self._add({"settings": {name: value}})

    def spent(self, dollars: str) -> None:
        self._add({"spent": dollars})

    def shown(self, id: str, shown: CallDisplay) -> None:
        """Save how a call was displayed, to replay it without its tool."""
        self._add({"shown": {id: _shown_fields(shown)}})

    def add(self, message: object) -> None:
        """Append a message."""
        self._write({"message": _dump_messages([message])[0]})

    def replace(self, messages: Sequence[object]) -> None:
        """Atomically replace all messages."""
        beside = self._path.with_suffix(".new")
        with self._recording_problem():
            with open(beside, "wb", opener=_private) as file:
                file.writelines(map(_line, _lines(self.record, _dump_messages(messages))))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            self.problem = None

    def _add(self, line: Json) -> None:
        self.record.take(line)
        self._write(line)

    def _write(self, line: Json) -> None:
        with self._recording_problem(), open(self._path, "ab", opener=_private) as file:
            file.write(_line(line))

    @contextmanager
    def _recording_problem(self) -> Generator[None]:
        try:
            yield
        except OSError as problem:
            self.problem = problem


def read_head(path: Path) -> Record:
    """Read only the folder and the title of a conversation. Raises OSError."""
    record = Record()
    with path.open("rb") as file:
        for line in _parse_lines(file.read(HEAD_BYTES)):
            record.take({name: value for name, value in line.items() if name in ("cwd", "title")})
    return record


def build_message_schema() -> None:
    """Build the schema of messages, which pydantic defers to its first use: it takes 0.1 s."""
    _parse_messages([])


def _dump_messages(messages: Sequence[object]) -> list[Json]:
    """Messages as JSON values for the file."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - slow import

    return ModelMessagesTypeAdapter.dump_python(cast("Any", list(messages)), mode="json")


def _parse_messages(messages: Sequence[Json]) -> list[Any]:
    """Parse messages from JSON values. Raises ValueError."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

    return list(ModelMessagesTypeAdapter.validate_python(list(messages)))


def _lines(record: Record, messages: list[Json]) -> Iterator[Json]:
    yield {"version": VERSION, "cwd": record.cwd, "title": record.title}
    yield {"settings": record.settings, "spent": record.spent}
    for call, shown in record.shown.items():
        yield {"shown": {call: _shown_fields(shown)}}
    for message in messages:
        yield {"message": message}


def _shown_fields(shown: CallDisplay) -> Json:
    return {"title": shown.title, "kind": shown.kind, "paths": list(shown.paths)}


def _line(values: Json) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _read_lines(path: Path) -> list[Json]:
    """All lines; truncates the file if a crash left its last line incomplete."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
    return list(_parse_lines(content[:end]))


def _parse_lines(content: bytes) -> Iterator[Json]:
    for line in content.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield cast("Json", value)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


ID = re.compile(r"[0-9a-z-]{8,64}")
LISTED = 100
"""Conversations per page of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A conversation as an entry of a list."""

    id: str
    cwd: str
    title: str
    updated: datetime


class SessionFiles:
    """All conversations of this user with this agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self, cwd: str) -> SessionFile:
        """Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SessionFile.begun(self._new_path(), cwd)

    def copy(self, id: str, cwd: str) -> SessionFile:
        """Copy a conversation as it is now, into a new file. Raises NoSuchSession, OSError."""
        try:
            content = self._path(id).read_bytes()
        except FileNotFoundError:
            raise NoSuchSession from None
        path = self._new_path()
        with open(path, "xb", opener=_private) as file:
            file.write(content[: content.rfind(b"\n") + 1])
            file.write(_line({"cwd": cwd}))
        try:
            return SessionFile.found(path)
        except NoSuchSession:
            path.unlink(missing_ok=True)
            raise

    def _new_path(self) -> Path:
        return self._folder / f"{datetime.now(UTC):%Y%m%d}-{token_hex(8)}.jsonl"

    def open(self, id: str) -> SessionFile:
        """Open an existing conversation. Raises NoSuchSession."""
        return SessionFile.found(self._path(id))

    def delete(self, id: str) -> None:
        """Delete a conversation; does nothing if it does not exist."""
        with suppress(NoSuchSession):
            self._path(id).unlink(missing_ok=True)

    def listed(self, cwd: str | None, start: int = 0) -> tuple[list[SessionSummary], int | None]:
        """One page of the conversations with a title, latest first, and the start of the next page.

        `cwd` limits the list to one folder.
        """
        summaries = sorted(self._summaries(cwd), key=lambda each: each.updated, reverse=True)
        end = start + LISTED
        return summaries[start:end], end if end < len(summaries) else None

    def _summaries(self, cwd: str | None) -> Iterator[SessionSummary]:
        for path in self._folder.glob("*.jsonl"):
            try:
                head, changed = read_head(path), path.stat().st_mtime
            except OSError:
                continue  # deleted meanwhile
            if head.title and (cwd is None or head.cwd == cwd):
                updated = datetime.fromtimestamp(changed, UTC)
                yield SessionSummary(id=path.stem, cwd=head.cwd, title=head.title, updated=updated)

    def _path(self, id: str) -> Path:
        if not ID.fullmatch(id):
            raise NoSuchSession
        return self._folder / f"{id}.jsonl"
