"""Opening the SQLite file: its settings and its schema.

Owns connections' settings and migrations. Does not know what the tables mean, nor who holds the one writer.

The journal's two files, opened together: the database and the head beside it.

One change of the tables: SQL and what goes into it. Does not know what it is about.
"""

import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from handrail.errors import NewerSchema, Unwritable
from handrail.store.hash_chain import START, HeadFile, Link, cut_beside, read_head

BUSY_SECONDS = 5.0
"""How long the writer waits for a foreign lock (a person's sqlite3 shell) before it says so."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step from a schema to the next."""

    number: int
    sql: str


def open_writer(path: Path, migrations: Sequence[Migration] | None = None) -> sqlite3.Connection:
    """The one connection that writes, with the schema brought up to date."""
    # Made here so that the file, and the -wal and -shm that inherit its mode, are private from the start.
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = _connect(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # What is deleted is overwritten, so that it is gone.
        connection.execute("PRAGMA secure_delete = ON")
        migrate(connection, shipped() if migrations is None else migrations)
        # A file that cannot be written is found here, and not at the first call.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that can only read; rows answer to column names."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    connection.row_factory = sqlite3.Row
    return connection


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply what is missing, each step whole or not at all; refuse a schema from the future."""
    found = schema_of(connection)
    known = max(step.number for step in migrations)
    if found > known:
        raise NewerSchema(found, known)
    for step in migrations:
        if step.number > found:
            _apply(connection, step)


def schema_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def shipped() -> list[Migration]:
    """The migrations in `schema/`, in order; a file's number is the schema it leads to."""
    files = resources.files("handrail.store").joinpath("schema").iterdir()
    steps = [Migration(int(file.name[:4]), file.read_text()) for file in files if file.name.endswith(".sql")]
    return sorted(steps, key=lambda step: step.number)


def _connect(path: Path) -> sqlite3.Connection:
    # Each connection is used by one thread at a time, but not always the one that opened it.
    # mode=rw: a missing file is an error here, never a new empty database.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{step.sql}\n;PRAGMA user_version = {step.number};\nCOMMIT;"
        )
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


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


Statement = tuple[str, tuple[str | int | None, ...]]
