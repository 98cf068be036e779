"""Terminals: events, records, queries and SQL for watched processes, their input and who controls them."""

import json
import sqlite3
from typing import Literal

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.query import Queries, Value, Where, column_names, columns_of
from handrail.store.values import (
    Certainty,
    Owner,
    TerminalKind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalOpened:
    """A watched process started."""

    kind: Literal["TerminalOpened"] = "TerminalOpened"
    terminal: str
    call: str | None
    name: str
    cwd: str
    pid: int
    of: TerminalKind = "command"
    owner: Owner | None = None
    """None in old records, where every terminal belonged to a call."""
    argv: tuple[str, ...] = ()
    cols: int = 80
    rows: int = 24
    nonce: str = ""
    """The nonce in its shell integration marks; empty when the shell emits none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTyped:
    """A person or an agent typed a line or keys."""

    kind: Literal["TerminalTyped"] = "TerminalTyped"
    terminal: str
    by: str
    person: bool
    text: str | None
    """None when the terminal did not echo it: hidden input is never recorded."""
    offset: int
    """Length of its output at that time, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTaken:
    """A person took control of a terminal: agents cannot type into it."""

    kind: Literal["TerminalTaken"] = "TerminalTaken"
    terminal: str
    by: str
    holds: bool
    """True: until it is released. False: only while the person types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalReleased:
    """Agents may type again."""

    kind: Literal["TerminalReleased"] = "TerminalReleased"
    terminal: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalAsked:
    """The program in a terminal waits for input."""

    kind: Literal["TerminalAsked"] = "TerminalAsked"
    terminal: str
    prompt: str
    sure: Certainty
    secret: bool
    """The input is not echoed (a password): only a person may answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalWentOn:
    """The program no longer waits for input."""

    kind: Literal["TerminalWentOn"] = "TerminalWentOn"
    terminal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalForgotten:
    """The output of an ended terminal was deleted, to stay within the retention limits."""

    kind: Literal["TerminalForgotten"] = "TerminalForgotten"
    terminal: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalEnded:
    """A watched process ended."""

    kind: Literal["TerminalEnded"] = "TerminalEnded"
    terminal: str
    exit_code: int | None
    signal: str | None
    bytes: int
    lost: bool = False
    """It ended with the keeper or its warden, so its exit status is unknown."""
    cwd: str | None = None
    """Its last known working directory, if any; decides which clients may read its output later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalClosed:
    """A person or a client closed a terminal; `TerminalEnded` follows with the exit status."""

    kind: Literal["TerminalClosed"] = "TerminalClosed"
    terminal: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalRecord:
    """One watched process; running while `ended_at` is None."""

    id: str
    call: str | None
    name: str
    cwd: str
    pid: int
    exit_code: int | None
    signal: str | None
    bytes: int | None
    """Length of its output; None while it runs."""
    lost: bool
    opened_at: int
    ended_at: int | None
    opened_seq: int
    of: TerminalKind
    owner: Owner | None
    """None in old records, where every terminal belonged to a call."""
    argv: tuple[str, ...]
    cols: int
    rows: int
    """The initial size."""
    nonce: str
    taken_by: str | None
    taken_holds: bool
    asked_prompt: str | None
    asked_sure: Certainty | None
    asked_secret: bool
    asked_at: int | None
    """None while it does not wait for input, and after its end."""
    forgotten_at: int | None
    """When its output was deleted."""
    typed_to: int | None
    """Length of its output at the last input; None before any input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedRecord:
    """A typed line or keys; without text if the terminal did not echo it."""

    seq: int
    terminal: str
    at: int
    by: str
    person: bool
    text: str | None
    offset: int
    """Length of the output at that time, in bytes."""


class TerminalQueries(Queries):
    """Queries for terminals."""

    async def find(
        self,
        running_only: bool = False,
        of: tuple[TerminalKind, ...] | None = None,
        before: int | None = None,
        limit: int = 200,
    ) -> list[TerminalRecord]:
        """Return terminals of these kinds, newest first; `before` is the `opened_seq` of the last one returned."""
        where = Where()
        where.add("opened_seq < ?", before)
        where.among('"of"', of)
        if running_only:
            where.plain("ended_at IS NULL")
        return await self._terminals(f"{where} ORDER BY opened_seq DESC LIMIT ?", *where.values, limit)

    async def with_output(self, after: str = "", limit: int = 1000) -> list[TerminalRecord]:
        """Return ended terminals whose output is not deleted, sorted by id, after the id `after`."""
        rest = " WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND id > ? ORDER BY id LIMIT ?"
        return await self._terminals(rest, after, limit)

    async def get(self, id: str) -> TerminalRecord | None:
        found = await self._terminals(" WHERE id = ?", id)
        return found[0] if found else None

    async def typed(self, terminal: str, limit: int = 200) -> list[TypedRecord]:
        """Return the last inputs of a terminal, oldest first."""
        sql = "SELECT * FROM typed WHERE terminal = ? ORDER BY seq DESC LIMIT ?"
        return (await self._all(typed_of, sql, (terminal, limit)))[::-1]

    async def _terminals(self, rest: str, *values: Value | None) -> list[TerminalRecord]:
        return await self._all(terminal_of, f"SELECT *, {_TYPED_TO} AS typed_to FROM terminals{rest}", values)


_TYPED_TO = '(SELECT max("offset") FROM typed WHERE typed.terminal = terminals.id)'


def terminal_of(row: sqlite3.Row) -> TerminalRecord:
    return TerminalRecord(
        owner=_owner_of(row),
        argv=tuple(json.loads(row["argv"])),
        **{name: bool(row[name]) for name in _TERMINAL_YES_NO},
        **columns_of(row, _TERMINAL_COLUMNS),
    )


def typed_of(row: sqlite3.Row) -> TypedRecord:
    return TypedRecord(person=bool(row["person"]), **columns_of(row, _TYPED_COLUMNS))


def _owner_of(row: sqlite3.Row) -> Owner | None:
    if row["owner_name"] is None:
        return None
    return Owner(person=bool(row["owner_person"]), name=row["owner_name"], workspace=row["owner_workspace"])


_TERMINAL_YES_NO = ("lost", "taken_holds", "asked_secret")
_TERMINAL_COLUMNS = column_names(TerminalRecord, "owner", "argv", *_TERMINAL_YES_NO)
_TYPED_COLUMNS = column_names(TypedRecord, "person")


def statements(
    seq: int, at: int, event: TerminalOpened | TerminalEnded | TerminalForgotten
) -> list[Statement]:
    match event:
        case TerminalOpened(terminal=id, call=call):
            return [_opened(seq, at, event), (_OF_CALL, (id, call))]
        case TerminalEnded(terminal=id, exit_code=code, signal=signal, bytes=size, lost=lost):
            return [(_ENDED, (code, signal, size, int(lost), event.cwd, at, id))]
        case TerminalForgotten(terminal=id):
            return [(_FORGOTTEN, (at, id))]


def _opened(seq: int, at: int, event: TerminalOpened) -> Statement:
    who = event.owner
    named = (event.terminal, event.call, event.name, event.cwd, event.pid, at, seq)
    owner = (None, None, None) if who is None else (int(who.person), who.name, who.workspace)
    made = (event.of, json.dumps(event.argv), event.cols, event.rows, event.nonce)
    return (_OPENED, (*named, *owner, *made))


_OF_CALL = "UPDATE calls SET terminal = ? WHERE id = ?"
_OPENED = """
INSERT INTO terminals (id, call, name, cwd, pid, opened_at, opened_seq,
                       owner_person, owner_name, owner_workspace, "of", argv, cols, "rows", nonce)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ENDED = """
UPDATE terminals SET exit_code = ?, signal = ?, bytes = ?, lost = ?, cwd = COALESCE(?, cwd), ended_at = ?,
                     taken_by = NULL, taken_holds = 0,
                     asked_prompt = NULL, asked_sure = NULL, asked_secret = 0, asked_at = NULL
WHERE id = ? AND ended_at IS NULL"""
_FORGOTTEN = "UPDATE terminals SET forgotten_at = ? WHERE id = ? AND forgotten_at IS NULL"

_OfSharing = TerminalTyped | TerminalTaken | TerminalReleased | TerminalAsked | TerminalWentOn


def sharing_statement(seq: int, at: int, event: _OfSharing) -> Statement:
    match event:
        case TerminalTyped(terminal=id, by=by, person=person, text=text, offset=offset):
            return (_TYPED, (seq, id, at, by, int(person), text, offset))
        case TerminalTaken(terminal=id, by=by, holds=holds):
            return (_TAKEN, (by, int(holds), id))
        case TerminalReleased(terminal=id):
            return (_TAKEN, (None, 0, id))
        case TerminalAsked(terminal=id, prompt=prompt, sure=sure, secret=secret):
            return (_ASKED, (prompt, sure, int(secret), at, id))
        case TerminalWentOn(terminal=id):
            return (_ASKED, (None, None, 0, None, id))


_TYPED = """
INSERT INTO typed (seq, terminal, at, "by", person, text, "offset")
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_TAKEN = "UPDATE terminals SET taken_by = ?, taken_holds = ? WHERE id = ? AND ended_at IS NULL"
_ASKED = """
UPDATE terminals SET asked_prompt = ?, asked_sure = ?, asked_secret = ?, asked_at = ?
WHERE id = ? AND ended_at IS NULL"""
