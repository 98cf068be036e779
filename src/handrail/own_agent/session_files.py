"""One conversation on disk: a file of JSON lines, private to this user.

Owns the lines. One is only ever added, but where the conversation was summed up: then the file is written anew, and takes
the old one's place at once. What a crash left half written is dropped. It holds what was said, and no key. It does not
know what messages mean (history.py), nor which conversations there are (sessions.py).

The conversations of this user with this agent: a folder of their own, private, with a file for each.
"""

import json
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from handrail.own_agent.tools.agent_tool import Json, Shown

VERSION = 1
HEAD_BYTES = 64 * 1024
"""Of a file that are read for a list: its title stands near the beginning."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What a file says, when all of its lines are read."""

    cwd: str = ""
    title: str = ""
    settings: dict[str, str] = field(default_factory=dict[str, str])
    messages: list[Json] = field(default_factory=list[Json])
    """As they were read; whoever has taken them up holds them from then on."""
    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])
    """How each call was shown to people, by its id."""
    spent: str = ""
    """US dollars, where prices were known."""

    def take(self, line: Json) -> None:
        """Lay one more line over what is known; what a later version may write there is left alone."""
        self.cwd = line.get("cwd", self.cwd)
        self.title = line.get("title", self.title)
        self.spent = line.get("spent", self.spent)
        self.settings |= line.get("settings", {})
        self.messages += [line["message"]] if "message" in line else []
        for call, shown in line.get("shown", {}).items():
            self.shown[call] = Shown(title=shown["title"], kind=shown["kind"], paths=tuple(shown["paths"]))


class NoSuchSession(Exception):
    """There is no conversation of this id, or none that can be read."""


class Kept:
    """One conversation's file. A disk that takes nothing more stops nobody: `problem` says so, and `replace` mends it."""

    def __init__(self, path: Path, record: Record) -> None:
        self._path, self.record = path, record
        self.problem: OSError | None = None
        """Why not all of it stands in the file."""

    @classmethod
    def begun(cls, path: Path, cwd: str) -> "Kept":
        """A new one. Raises OSError."""
        record = Record(cwd=cwd)
        with open(path, "xb", opener=_private) as file:
            file.writelines(map(_line, _lines(record, [])))
        return cls(path, record)

    @classmethod
    def found(cls, path: Path) -> "Kept":
        """One from before. Raises NoSuchSession."""
        record = Record()
        try:
            for line in _mended(path):
                record.take(line)
        except (OSError, AttributeError, KeyError, TypeError):  # nothing of ours, or not any more
            raise NoSuchSession from None
        if not record.cwd:
            raise NoSuchSession
        return cls(path, record)

    @property
    def id(self) -> str:
        return self._path.stem

    def taken(self) -> list[Any]:
        """The messages that were read, for whoever holds them from now on. Raises NoSuchSession where they are none."""
        messages, self.record.messages = self.record.messages, []
        try:
            return _messages_in(messages)
        except ValueError:
            raise NoSuchSession from None

    def title(self, title: str) -> None:
        self._add({"title": title})

    def set(self, name: str, value: str) -> None:
        self._add({"settings": {name: value}})

    def spent(self, dollars: str) -> None:
        self._add({"spent": dollars})

    def shown(self, id: str, shown: Shown) -> None:
        """How a call was shown, so that it can be shown again without its tool."""
        self._add({"shown": {id: _told(shown)}})

    def add(self, message: object) -> None:
        """One more message."""
        self._write({"message": _written([message])[0]})

    def replace(self, messages: Sequence[object]) -> None:
        """These, in place of all so far."""
        beside = self._path.with_suffix(".new")
        with self._trying():
            with open(beside, "wb", opener=_private) as file:
                file.writelines(map(_line, _lines(self.record, _written(messages))))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            self.problem = None

    def _add(self, line: Json) -> None:
        self.record.take(line)
        self._write(line)

    def _write(self, line: Json) -> None:
        with self._trying(), open(self._path, "ab", opener=_private) as file:
            file.write(_line(line))

    @contextmanager
    def _trying(self) -> Generator[None]:
        try:
            yield
        except OSError as problem:
            self.problem = problem


def head_of(path: Path) -> Record:
    """Where it is and what it is called; the rest is not read. Raises OSError."""
    record = Record()
    with path.open("rb") as file:
        for line in _parsed(file.read(HEAD_BYTES)):
            record.take({name: value for name, value in line.items() if name in ("cwd", "title")})
    return record


def _written(messages: Sequence[object]) -> list[Json]:
    """Messages as they stand in a file."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - slow import, kept off the path to `initialize`

    return ModelMessagesTypeAdapter.dump_python(cast("Any", list(messages)), mode="json")


def _messages_in(messages: Sequence[Json]) -> list[Any]:
    """The other way round. Raises ValueError where they are none."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

    return list(ModelMessagesTypeAdapter.validate_python(list(messages)))


def _lines(record: Record, messages: list[Json]) -> Iterator[Json]:
    yield {"version": VERSION, "cwd": record.cwd, "title": record.title}
    yield {"settings": record.settings, "spent": record.spent}
    for call, shown in record.shown.items():
        yield {"shown": {call: _told(shown)}}
    for message in messages:
        yield {"message": message}


def _told(shown: Shown) -> Json:
    return {"title": shown.title, "kind": shown.kind, "paths": list(shown.paths)}


def _line(values: Json) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _mended(path: Path) -> list[Json]:
    """All lines; one that a crash left half written at the end is taken out of the file."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
    return list(_parsed(content[:end]))


def _parsed(content: bytes) -> Iterator[Json]:
    for line in content.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield cast("Json", found)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


ID = re.compile(r"[0-9a-z-]{8,64}")
LISTED = 100
"""Conversations in one page of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A conversation, as people find it again."""

    id: str
    cwd: str
    title: str
    updated: datetime


class Sessions:
    """All conversations of this user with this agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self, cwd: str) -> Kept:
        """Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Kept.begun(self._folder / f"{datetime.now(UTC):%Y%m%d}-{token_hex(8)}.jsonl", cwd)

    def open(self, id: str) -> Kept:
        """One from before. Raises NoSuchSession."""
        return Kept.found(self._path(id))

    def delete(self, id: str) -> None:
        """One that is not there is deleted already."""
        with suppress(NoSuchSession):
            self._path(id).unlink(missing_ok=True)

    def listed(self, cwd: str | None, start: int = 0) -> tuple[list[Listed], int | None]:
        """Those in which something was said, of this folder where one is given; the latest first. And where the next page
        starts."""
        found = sorted(self._headed(cwd), key=lambda each: each.updated, reverse=True)
        end = start + LISTED
        return found[start:end], end if end < len(found) else None

    def _headed(self, cwd: str | None) -> Iterator[Listed]:
        for path in self._folder.glob("*.jsonl"):
            try:
                head, changed = head_of(path), path.stat().st_mtime
            except OSError:
                continue  # deleted while we looked
            if head.title and (cwd is None or head.cwd == cwd):
                updated = datetime.fromtimestamp(changed, UTC)
                yield Listed(id=path.stem, cwd=head.cwd, title=head.title, updated=updated)

    def _path(self, id: str) -> Path:
        if not ID.fullmatch(id):
            raise NoSuchSession
        return self._folder / f"{id}.jsonl"
