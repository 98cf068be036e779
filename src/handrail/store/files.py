"""The journal's two files, opened together: the database and the head beside it.

Owns what is found when they disagree: a head that the database no longer reaches is kept as evidence for
`handrail doctor`, and its numbers are not given again. Does not know threads.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from handrail.errors import Unwritable
from handrail.store.chain import START, Link
from handrail.store.database import open_writer
from handrail.store.head import HeadFile, cut_beside, read_head


@dataclass(frozen=True, slots=True)
class Files:
    """What the writer writes to."""

    connection: sqlite3.Connection
    head: HeadFile
    last: Link
    """The newest row."""
    highest: int
    """The highest number ever given, as far as can be known."""


def open_files(path: Path, head: Path) -> Files:
    """Open both, or raise `Unwritable` or `NewerSchema`. Blocks."""
    try:
        connection = open_writer(path)
        try:
            last = newest(connection)
            highest = _keep_evidence(connection, last, head)
            return Files(connection, _open_head(head, last), last, highest)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise Unwritable(f"{path}: {error}") from error


def newest(connection: sqlite3.Connection) -> Link:
    row = connection.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return START if row is None else Link(row[0], row[1])


def holds(connection: sqlite3.Connection, link: Link) -> bool:
    """The database reaches this link: its row is there, with this hash."""
    row = connection.execute("SELECT chain FROM events WHERE seq = ?", (link.seq,)).fetchone()
    return link == START or (row is not None and row[0] == link.chain)


def _keep_evidence(connection: sqlite3.Connection, last: Link, head: Path) -> int:
    """Set a head aside that the writer would otherwise overwrite; the highest number that was given."""
    said = read_head(head)
    if said is None or (isinstance(said, Link) and holds(connection, said)):
        return last.seq
    aside = cut_beside(head)
    if not aside.exists():  # the first evidence says most
        head.rename(aside)
    return max(last.seq, said.seq) if isinstance(said, Link) else last.seq


def _open_head(path: Path, last: Link) -> HeadFile:
    """The head file, in step with the database: there is never a journal whose head says nothing."""
    head = HeadFile(path)
    try:
        head.write(last)
    except BaseException:
        head.close()
        raise
    return head
