"""Integrity: verify the journal against its hash chain and head file, and make verified backups.

Reads only, also while a daemon writes. Interprets no event but JournalCompacted, whose gaps the chain is verified across,
and does not check the tables derived from events.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from handrail.lazy_dataclass import dataclass
from handrail.store.database import has_link, lenient_text, newest, open_reader
from handrail.store.hash_chain import (
    GENESIS,
    START,
    Link,
    Unreadable,
    chained,
    cut_head_path,
    payload_hash,
    read_head,
)
from handrail.store.journal_compaction import Gap, find_unannounced, read_gaps, recorded_gaps

FAULTS_MAX = 100
"""Bounds the report on a file with a fault in every row."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A difference from the written journal, and the row where it shows."""

    seq: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a verification."""

    rows: int
    erased: int
    """Rows whose payload was erased on purpose; their chain link is still verified."""
    compacted: int
    """Events that were removed because of their age, as later events record."""
    compacted_at: int | None
    """The time of the last removal, in milliseconds since 1970."""
    last: Link
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        if self.ok:
            count = f"{self.rows} {'event' if self.rows == 1 else 'events'}"
            return f"The journal is whole: {count}, the last is {self.last.seq}.{self._describe_compaction()}"
        found = " ".join(f"At {fault.seq}: {fault.what}." for fault in self.faults)
        return f"The journal was changed after it was written. {found}"

    def _describe_compaction(self) -> str:
        if self.compacted_at is None:
            return ""
        when = datetime.fromtimestamp(self.compacted_at / 1000).astimezone()
        return f" {self.compacted} older events were compacted, the last on {when:%Y-%m-%d at %H:%M}."


def verify(path: Path, head: Path | None) -> Verdict:
    """Check every row against the chain, and the end of the chain against the head file if a path is given."""
    # Read the heads before the database: a daemon that writes meanwhile only moves the database ahead.
    heads = None if head is None else (read_head(head), read_head(cut_head_path(head)))
    walk = ChainWalk()
    try:
        with closing(open_reader(path)) as connection:
            connection.text_factory = lenient_text
            connection.execute("BEGIN")
            walk.read_gaps(connection)
            walk.read_rows(connection)
            walk.finish()
            walk.faults.extend(_damage(connection))
            walk.faults.extend(_tail(connection, *heads) if heads else ())
    except sqlite3.Error as error:
        walk.faults.append(Fault(walk.last.seq, f"the file cannot be read further ({error})"))
    return Verdict(
        rows=walk.rows,
        erased=walk.erased,
        compacted=walk.compacted,
        compacted_at=walk.compacted_at,
        last=walk.last,
        faults=tuple(walk.faults[:FAULTS_MAX]),
    )


def has_event(path: Path, link: Link) -> bool:
    """Whether the journal at `path` has this event with this hash, and so every event before it as it was then."""
    with closing(open_reader(path)) as connection:
        return has_link(connection, link)


def check_compactions(path: Path, head: Link, announced: bytes | None) -> tuple[str, ...]:
    """The compactions after this head that were not announced, each as a sentence."""
    with closing(open_reader(path)) as connection:
        return tuple(find_unannounced(connection, head.seq, announced))


class ChainWalk:
    """Verifies the chain row by row, across the gaps of compactions, and collects faults."""

    def __init__(self) -> None:
        self.rows = 0
        self.erased = 0
        self.compacted = 0
        self.compacted_at: int | None = None
        self.last = START
        self.faults: list[Fault] = []
        self.gaps: frozenset[Gap] = frozenset()
        """All gaps in the database. `finish` checks that events record them."""
        self._ahead: list[Gap] = []
        self._recorded: set[Gap] = set()
        # After a faulty row, the next may follow the stored hash or the recomputed one.
        self._before = (GENESIS,)

    def read_gaps(self, connection: sqlite3.Connection) -> None:
        gaps = read_gaps(connection)
        self.gaps = frozenset(gaps)
        self._ahead = gaps[::-1]

    def read_rows(self, connection: sqlite3.Connection) -> None:
        """Verify all rows."""
        self._read(connection.execute("SELECT * FROM events ORDER BY seq"))

    def read_some(self, connection: sqlite3.Connection, limit: int) -> bool:
        """Verify the next `limit` rows; return whether there may be more."""
        before = self.rows
        sql = "SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        self._read(connection.execute(sql, (self.last.seq, limit)))
        return self.rows - before == limit and not self.faults

    def finish(self) -> None:
        """Compare the gaps with the events that record them."""
        for gap in sorted(self.gaps - self._recorded, key=lambda gap: gap.last):
            what = (
                f"events {gap.first} to {gap.last} are missing, and no later event records their compaction"
            )
            self.faults.append(Fault(gap.last, what))

    def _read(self, cursor: sqlite3.Cursor) -> None:
        with closing(cursor) as rows:
            for row in rows:
                while self._ahead and self._ahead[-1].last < row["seq"]:
                    self._cross(self._ahead.pop())
                self._step(row)
                if len(self.faults) >= FAULTS_MAX:
                    return

    def _cross(self, gap: Gap) -> None:
        """Continue after a gap. Whether it is genuine is known at the end."""
        if gap.first > self.last.seq:
            self.compacted += gap.events
            self._before = (bytes.fromhex(gap.chain),)
            self.last = Link(gap.last, self._before[0])
        else:
            self.faults.append(Fault(gap.last, f"events from {gap.first} count as compacted but are there"))

    def _step(self, row: sqlite3.Row) -> None:
        self.rows += 1
        self.erased += row["payload"] is None
        if row["payload"] is not None and payload_hash(row["payload"]) != row["payload_hash"]:
            self.faults.append(Fault(row["seq"], "its payload is not the one that was written"))
        elif row["kind"] == "JournalCompacted":
            self._note_compaction(row)
        fitting = [_chain(before, row) for before in self._before]
        if row["chain"] not in fitting:
            self.faults.append(Fault(row["seq"], self._misfit(row["seq"])))
        self._before = (row["chain"], *(chain for chain in fitting[:1] if chain != row["chain"]))
        self.last = Link(row["seq"], row["chain"])

    def _note_compaction(self, row: sqlite3.Row) -> None:
        """A record counts only for events before it."""
        self.compacted_at = row["at"]
        try:
            gaps = recorded_gaps(row["payload"]) if row["payload"] is not None else ()
        except ValidationError:
            self.faults.append(Fault(row["seq"], "it cannot be read"))
            return
        self._recorded.update(gap for gap in gaps if gap.last < row["seq"])

    def _misfit(self, seq: int) -> str:
        first = self.last.seq + 1
        if seq == first:
            return "it does not follow from the events before it: it was altered, or they were"
        missing = f"event {first}" if seq == first + 1 else f"events {first} to {seq - 1}"
        return f"it does not follow from event {self.last.seq}: {missing} before it may have been removed"


def _chain(before: bytes, row: sqlite3.Row) -> bytes:
    return chained(before, row["seq"], row["at"], row["kind"], row["payload_hash"])


def _damage(connection: sqlite3.Connection) -> Iterator[Fault]:
    for row in connection.execute("PRAGMA quick_check(10)"):
        if row[0] != "ok":
            yield Fault(0, f"the file is damaged ({row[0]})")


def _tail(
    connection: sqlite3.Connection, said: Link | Unreadable | None, cut: Link | Unreadable | None
) -> Iterator[Fault]:
    end = newest(connection).seq
    if said is None and end:
        yield Fault(end, "the head file is missing, so a cut tail cannot be ruled out")
    for link in (said, cut):
        match link:
            case Unreadable(why):
                yield Fault(end, why)
            case Link(seq) if not has_link(connection, link):
                yield Fault(
                    seq, f"the journal had reached event {seq}, which is gone or altered; it ends at {end}"
                )
            case _:
                pass


def backup(path: Path, target: Path) -> Verdict:
    """Copy the database to `target`, which must be new, and verify the copy.

    Raises `FileExistsError`, or `OSError` or `sqlite3.Error` when reading or writing fails; then no copy
    remains. The copy of a tampered journal is kept, and the verdict lists its faults.
    """
    with closing(open_reader(path)) as source:
        _make(target)
        try:
            _copy(source, target)
            return verify(target, None)
        except BaseException:
            target.unlink()
            raise


def _make(target: Path) -> None:
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise FileExistsError(
            f"{target} is already there and was left as it is. Name a file that does not exist yet."
        ) from None


def _copy(source: sqlite3.Connection, target: Path) -> None:
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file, without a WAL
