"""Durable commits to SQLite with the settings of Handrail's journal: WAL, synchronous=FULL, one row per commit."""

import sqlite3


class Commits:
    """A database that gets one row at a time."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, text TEXT)")

    def commit(self, text: str) -> None:
        """Return when the text is safely on disk."""
        self._connection.execute("INSERT INTO records (text) VALUES (?)", (text,))
