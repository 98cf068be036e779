"""Reading the database from async code: one read connection, used in a worker thread, one read at a time.

Does not know any query.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from handrail.store.database import open_reader

T = TypeVar("T")


class Reader:
    """A read connection of its own. A query must read all it wants: an open cursor would hold back the log."""

    def __init__(self, path: Path) -> None:
        self._connection = open_reader(path)
        self._one = CapacityLimiter(1)

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await to_thread.run_sync(query, self._connection, limiter=self._one)

    def close(self) -> None:
        self._connection.close()
