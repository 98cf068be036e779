"""A copy of the database, made while the daemon runs, and checked.

Does not know what is in it.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from handrail.store.database import open_reader
from handrail.store.verify import Verdict, verify


def backup(path: Path, target: Path) -> Verdict:
    """Copy the database to `target`, which must be new, and verify the copy.

    Raises `FileExistsError`, or `OSError` or `sqlite3.Error` when it cannot be read or written; then no copy
    remains. A copy of a journal that was tampered with is kept: the verdict says what is wrong with it.
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
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
