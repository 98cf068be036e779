"""Integrity: verify the journal against its hash chain and head file, and make verified backups.

Reads only, also while a daemon writes. Does not interpret events, and does not check the tables derived from them.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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
    last: Link
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        if self.ok:
            return f"The journal is whole: {self.rows} {'event' if self.rows == 1 else 'events'}, the last is {self.last.seq}."
        found = " ".join(f"At {fault.seq}: {fault.what}." for fault in self.faults)
        return f"The journal was changed after it was written. {found}"


def verify(path: Path, head: Path | None) -> Verdict:
    """Check every row against the chain, and the end of the chain against the head file if a path is given."""
    # Read the heads before the database: a daemon that writes meanwhile only moves the database ahead.
    heads = None if head is None else (read_head(head), read_head(cut_head_path(head)))
    walk = _Walk()
    try:
        with closing(open_reader(path)) as connection:
            connection.text_factory = lenient_text
            connection.execute("BEGIN")
            walk.all_rows(connection)
            walk.faults.extend(_damage(connection))
            walk.faults.extend(_tail(connection, *heads) if heads else ())
    except sqlite3.Error as error:
        walk.faults.append(Fault(walk.last.seq, f"the file cannot be read further ({error})"))
    return Verdict(rows=walk.rows, erased=walk.erased, last=walk.last, faults=tuple(walk.faults[:FAULTS_MAX]))


def has_event(path: Path, link: Link) -> bool:
    """Whether the journal at `path` has this event with this hash, and so every event before it as it was then."""
    with closing(open_reader(path)) as connection:
        return has_link(connection, link)


class _Walk:
    """Verifies the chain row by row and collects faults."""

    def __init__(self) -> None:
        self.rows = 0
        self.erased = 0
        self.last = START
        self.faults: list[Fault] = []
        # After a faulty row, the next may follow the stored hash or the recomputed one.
        self._before = (GENESIS,)

    def all_rows(self, connection: sqlite3.Connection) -> None:
        with closing(connection.execute("SELECT * FROM events ORDER BY seq")) as rows:
            for row in rows:
                self._step(row)
                if len(self.faults) >= FAULTS_MAX:
                    return

    def _step(self, row: sqlite3.Row) -> None:
        self.rows += 1
        self.erased += row["payload"] is None
        if row["payload"] is not None and payload_hash(row["payload"]) != row["payload_hash"]:
            self.faults.append(Fault(row["seq"], "its payload is not the one that was written"))
        fitting = [_chain(before, row) for before in self._before]
        if row["chain"] not in fitting:
            self.faults.append(Fault(row["seq"], self._misfit(row["seq"])))
        self._before = (row["chain"], *(chain for chain in fitting[:1] if chain != row["chain"]))
        self.last = Link(row["seq"], row["chain"])

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
