"""The SQLite database: connections and their settings, migrations, and the head file opened beside it.

Knows no table but `events`, whose last row it compares with the head file.
"""

import os
import sqlite3
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from handrail.errors import LostJournal, NewerSchema, Unwritable
from handrail.lazy_dataclass import dataclass
from handrail.regular_file import NotRegular
from handrail.store.hash_chain import START, HeadFile, Link, cut_head_path, read_head

BUSY_SECONDS = 5.0
"""How long a connection waits for another process's lock (a person's sqlite3 shell) before it fails."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered migration from a schema to the next."""

    number: int
    sql: str


def open_writer(path: Path, migrations: Sequence[Migration] | None = None) -> sqlite3.Connection:
    """Open the only connection that writes, and migrate the schema."""
    # Create the file here, so that it is private from the start; -wal and -shm inherit its mode.
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
    if not path.is_file():
        raise NotRegular(f"{path} is not a regular file")
    connection = _connect(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # Overwrite deleted content in the file.
        connection.execute("PRAGMA secure_delete = ON")
        migrate(connection, shipped() if migrations is None else migrations)
        # Fail here on a read-only file, not at the first call.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a read-only connection; its rows are accessible by column name."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    connection.row_factory = sqlite3.Row
    return connection


def lenient_text(text: bytes) -> str:
    """Decode any bytes: a tampered text may not be UTF-8, and must still be read and compared."""
    return text.decode("utf-8", "surrogateescape")


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply the missing migrations, each in one transaction. Raises `NewerSchema` for a schema newer than ours."""
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
    """Return the migrations in `schema/`, in order; a file's number is the schema version it produces."""
    files = resources.files("handrail.store").joinpath("schema").iterdir()
    steps = [Migration(int(file.name[:4]), file.read_text()) for file in files if file.name.endswith(".sql")]
    return sorted(steps, key=lambda step: step.number)


def _connect(path: Path) -> sqlite3.Connection:
    # One thread at a time uses a connection, but not always the thread that opened it.
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
    """The open database and head file, for the writer."""

    connection: sqlite3.Connection
    head: HeadFile
    last: Link
    """The newest row."""
    highest: int
    """The highest number known to have been assigned; above `last.seq` after a truncation."""
    wal: Path
    """The write-ahead log of the database."""


def open_files(path: Path, head: Path) -> Files:
    """Open the database and the head file. Raises `Unwritable`, `NewerSchema` or `LostJournal`. Blocks."""
    try:
        connection = open_writer(path)
        try:
            last = newest(connection)
            highest = _keep_evidence(connection, last, head)
            return Files(
                connection, _open_head(head, last), last, highest, path.with_name(path.name + "-wal")
            )
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise Unwritable(f"{path}: {error}") from error


def newest(connection: sqlite3.Connection) -> Link:
    row = connection.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return START if row is None else Link(row[0], row[1])


def has_link(connection: sqlite3.Connection, link: Link) -> bool:
    """Whether the database has this link: a row with this number and hash."""
    row = connection.execute("SELECT chain FROM events WHERE seq = ?", (link.seq,)).fetchone()
    return link == START or (row is not None and row[0] == link.chain)


def _keep_evidence(connection: sqlite3.Connection, last: Link, head: Path) -> int:
    """Set aside a head that does not match the database, before the writer overwrites it; return the highest number."""
    said = read_head(head)
    if last == START and isinstance(said, Link) and said != START:
        raise LostJournal(connection_path(connection), str(head), said.seq)
    if said is None or (isinstance(said, Link) and has_link(connection, said)):
        return last.seq
    aside = cut_head_path(head)
    if not aside.exists():  # keep the oldest evidence
        head.rename(aside)
    return max(last.seq, said.seq) if isinstance(said, Link) else last.seq


def connection_path(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA database_list").fetchone()[2])


def _open_head(path: Path, last: Link) -> HeadFile:
    """Open the head file and write the newest link, so that a journal always has a valid head."""
    head = HeadFile(path)
    try:
        head.write(last)
    except BaseException:
        head.close()
        raise
    return head


Statement = tuple[str, tuple[str | int | bytes | None, ...]]
"""One SQL statement and its parameters."""


def statement_size(statement: Statement) -> int:
    """Approximate size of its parameters, in bytes."""
    return sum(len(value) for value in statement[1] if isinstance(value, str | bytes))
