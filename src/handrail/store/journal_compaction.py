"""Compaction: events, SQL and plans for removing old events, with the chain verifiable across the gaps.

An event is removed when it is old and everything that it is about has ended. Rules, trust, credentials and accepted policies
stay, and so does each event about an open call, a running terminal or a thread that exists. A row of another table is
removed with the event that opened it.

Every compaction is an event of its own, written in the transaction that removes: `JournalCompacted`. It lists each run of
removed events with the hash of its last one. A record counts only for events before it, so nobody can insert one into an
older part of the chain.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.hash_chain import GENESIS, chained, payload_hash
from handrail.store.rules import RULE_KINDS

BATCH = 512
"""Events considered at a time: bounds how long one transaction blocks the writer, and the size of its event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A run of removed events."""

    first: int
    last: int
    chain: str
    """The hash of the last one, in hex. It covers all events up to there."""
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCompacted:
    """Old events were removed."""

    kind: Literal["JournalCompacted"] = "JournalCompacted"
    before: int
    """Only older events were removed. Milliseconds since 1970."""
    events: int
    """Number of events removed."""
    gaps: tuple[Gap, ...]
    """The runs of removed events. A run may include runs that were recorded before."""


def statements(seq: int, event: JournalCompacted) -> list[Statement]:
    """Remove the runs. Only events before this one: no event removes itself."""
    return [statement for gap in event.gaps if gap.last < seq for statement in _remove(seq, gap)]


def _remove(seq: int, gap: Gap) -> Iterator[Statement]:
    for sql in _REMOVED:
        yield sql, (gap.first, gap.last)
    yield _GAP, (gap.first, gap.last, gap.chain, gap.events, seq)


_REMOVED = (
    "DELETE FROM typed WHERE terminal IN (SELECT id FROM terminals WHERE opened_seq BETWEEN ? AND ?)",
    "DELETE FROM terminals WHERE opened_seq BETWEEN ? AND ?",
    "DELETE FROM approvals WHERE opened_seq BETWEEN ? AND ?",
    "DELETE FROM file_changes WHERE seq BETWEEN ? AND ?",
    "DELETE FROM undos WHERE seq BETWEEN ? AND ?",
    "DELETE FROM operations WHERE opened_seq BETWEEN ? AND ?",
    "DELETE FROM calls WHERE opened_seq BETWEEN ? AND ?",
    "DELETE FROM events WHERE seq BETWEEN ? AND ?",
    "DELETE FROM compacted WHERE last BETWEEN ? AND ?",
)
_GAP = "INSERT OR REPLACE INTO compacted (first, last, chain, events, recorded_seq) VALUES (?, ?, ?, ?, ?)"


def read_gaps(connection: sqlite3.Connection, after: int = 0, upto: int = (1 << 63) - 1) -> list[Gap]:
    """The runs of removed events that end after `after`, in order. None in a database of an older version."""
    with suppress(sqlite3.OperationalError):
        return [_gap_of(row) for row in connection.execute(_GAPS, (after, upto))]
    return []


def find_gap_before(connection: sqlite3.Connection, seq: int) -> Gap | None:
    """The last run of removed events before this event."""
    with suppress(sqlite3.OperationalError):
        row = connection.execute(_GAP_BEFORE, (seq,)).fetchone()
        return None if row is None else _gap_of(row)
    return None


def _gap_of(row: Sequence[str | int]) -> Gap:
    return Gap(first=int(row[0]), last=int(row[1]), chain=str(row[2]), events=int(row[3]))


_GAPS = "SELECT first, last, chain, events FROM compacted WHERE last > ? AND last <= ? ORDER BY last"

_GAP_BEFORE = "SELECT first, last, chain, events FROM compacted WHERE last < ? ORDER BY last DESC LIMIT 1"


def find_unannounced(connection: sqlite3.Connection, after: int, announced: bytes | None) -> list[str]:
    """The compactions after event `after`, apart from the announced one; each as a sentence."""
    rows = connection.execute(_COMPACTIONS, (after,)).fetchall()
    return [
        f"Event {row['seq']} says that old events were removed, but the daemon did not do that."
        for row in rows
        if row["payload_hash"] != announced
    ]


_COMPACTIONS = "SELECT seq, payload_hash FROM events WHERE kind = 'JournalCompacted' AND seq > ? ORDER BY seq"


def recorded_gaps(payload: str) -> tuple[Gap, ...]:
    """The runs that a JournalCompacted event recorded."""
    return _compaction_adapter().validate_json(payload).gaps


@cache
def _compaction_adapter() -> TypeAdapter[JournalCompacted]:
    return TypeAdapter(JournalCompacted)


class AlteredEvent(Exception):
    """An event does not match its hash, so neither it nor a later one may be removed: it is evidence."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        super().__init__(f"Event {seq} was altered, or events before it were removed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which events may be removed."""

    before: int
    """Only events before this time, in milliseconds since 1970."""
    upto: int
    """Only events before this number: the newest that the keeper remembers must stay."""
    keep: frozenset[int]
    """Events that stay in any case: an administrator keeps their hashes."""
    gaps: frozenset[Gap]
    """The gaps that the chain verifies. With any other, nothing is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of looking at one batch of events."""

    upto: int
    """The last event considered."""
    event: JournalCompacted | None
    """What to remove; None if everything stays."""
    is_last: bool
    """There are no older events to consider."""


def plan_batch(connection: sqlite3.Connection, after: int, limits: Limits) -> Plan:
    """Decide about the next events after `after`, and verify each of them. Reads only. Raises AlteredEvent."""
    values = {"after": after, "upto": limits.upto, "before": limits.before, "limit": BATCH}
    found = connection.execute(_CANDIDATES, values).fetchall()
    rows = found[: next((n for n, row in enumerate(found) if row["at"] >= limits.before), len(found))]
    fold = _Fold(connection, after, limits.gaps)
    gaps = read_gaps(connection, after, rows[-1]["seq"] if rows else after)
    for row in rows:
        while gaps and gaps[0].last < row["seq"]:
            fold.take_gap(gaps.pop(0))
        fold.take_row(row, stays=bool(row["stays"]) or row["seq"] in limits.keep)
    fold.close()
    removed = JournalCompacted(before=limits.before, events=fold.removed, gaps=tuple(fold.gaps))
    return Plan(
        upto=rows[-1]["seq"] if rows else after,
        event=removed if fold.removed else None,
        is_last=len(rows) < BATCH,
    )


class _Fold:
    """Joins removed events and older gaps to runs, up to the next event that stays; verifies the chain on the way."""

    def __init__(self, connection: sqlite3.Connection, after: int, known: frozenset[Gap]) -> None:
        self.gaps: list[Gap] = []
        self._known = known
        self.removed = 0
        before = connection.execute(
            "SELECT seq, chain FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (after,)
        ).fetchone()
        self._chain: bytes = GENESIS if before is None else before["chain"]
        self._run: Gap | None = None
        self._fresh = 0
        for gap in read_gaps(connection, 0 if before is None else before["seq"], after):
            self.take_gap(gap)

    def take_gap(self, gap: Gap) -> None:
        if gap not in self._known:
            raise AlteredEvent(gap.last)
        run, self._chain = self._run, bytes.fromhex(gap.chain)
        self._run = gap if run is None else replace(gap, first=run.first, events=run.events + gap.events)

    def take_row(self, row: sqlite3.Row, *, stays: bool) -> None:
        self._verify(row)
        if stays:
            self.close()
            self._run = None
            return
        first, events = (row["seq"], 0) if self._run is None else (self._run.first, self._run.events)
        self._run = Gap(first=first, last=row["seq"], chain=row["chain"].hex(), events=events + 1)
        self._fresh += 1

    def close(self) -> None:
        """End the run; record it if an event was added to it."""
        if self._run is not None and self._fresh:
            self.gaps.append(self._run)
            self.removed += self._fresh
        self._fresh = 0

    def _verify(self, row: sqlite3.Row) -> None:
        is_same = row["payload"] is None or payload_hash(row["payload"]) == row["payload_hash"]
        chain = chained(self._chain, row["seq"], row["at"], row["kind"], row["payload_hash"])
        if not is_same or chain != row["chain"]:
            raise AlteredEvent(row["seq"])
        self._chain = chain


_KEPT_KINDS = (
    *RULE_KINDS,
    "PolicyAccepted",
    "AgentsPaused",
    "AgentsResumed",
    "ServerToolsPinned",
    "CredentialIssued",
    "CredentialRevoked",
)
"""Few and small, and what they say holds for ever."""
_THREAD_EXISTS = "EXISTS (SELECT 1 FROM threads WHERE threads.id = {0})"
_HAS_OUTPUT = """EXISTS (
    SELECT 1 FROM terminals AS of_call WHERE of_call.id = calls.terminal
    AND (of_call.ended_at IS NULL OR of_call.forgotten_at IS NULL AND of_call.bytes > 0))"""
_CALL_STAYS = f"""EXISTS (
    SELECT 1 FROM calls WHERE calls.id = {{0}} AND (
        calls.settled_at IS NULL OR calls.stopped_at IS NULL OR calls.settled_at >= :before
        OR {_THREAD_EXISTS.format("calls.thread")} OR {_HAS_OUTPUT}))"""
_TERMINAL_STAYS = f"""EXISTS (
    SELECT 1 FROM terminals WHERE terminals.id = {{0}} AND (
        terminals.ended_at IS NULL OR terminals.ended_at >= :before
        OR terminals.forgotten_at IS NULL AND terminals.bytes > 0
        OR {_CALL_STAYS.format("terminals.call")}))"""
_OPERATION_STAYS = f"""EXISTS (
    SELECT 1 FROM operations WHERE operations.id = {{0}} AND (
        operations.ended_at IS NULL OR operations.ended_at >= :before
        OR {_THREAD_EXISTS.format("operations.thread")}))"""
_UNDO_STAYS = f"""kind = 'FilesRestored' AND EXISTS (
    SELECT 1 FROM json_each(payload, '$.calls') AS undone WHERE {_CALL_STAYS.format("undone.value")})"""
_CANDIDATES = f"""
SELECT seq, at, kind, payload, payload_hash, chain, (
    kind IN ({", ".join(f"'{kind}'" for kind in _KEPT_KINDS)})
    OR {_TERMINAL_STAYS.format("json_extract(payload, '$.terminal')")}
    OR {_CALL_STAYS.format("json_extract(payload, '$.call')")}
    OR {_THREAD_EXISTS.format("json_extract(payload, '$.thread')")}
    OR {_OPERATION_STAYS.format("json_extract(payload, '$.operation')")}
    OR {_UNDO_STAYS}
    OR kind = 'DaemonStarted' AND seq = (SELECT max(seq) FROM events WHERE kind = 'DaemonStarted')
    OR kind = 'JournalCompacted' AND EXISTS (SELECT 1 FROM compacted WHERE recorded_seq = events.seq)
) AS stays
FROM events WHERE seq > :after AND seq < :upto ORDER BY seq LIMIT :limit"""
