"""How a question is put: a reader to ask, and conditions that are left out when they are not asked for.

Does not know any table.
"""

import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

from handrail.store.reader import Reader

T = TypeVar("T")
Value = str | int


class Asking:
    """Questions to one reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def _all(
        self, make: Callable[[sqlite3.Row], T], sql: str, values: Iterable[Value | None] = ()
    ) -> list[T]:
        """Every row that is found, made into something, in the reader's thread."""
        given = tuple(values)
        return await self._reader.read(lambda db: [make(row) for row in db.execute(sql, given)])


class Where:
    """The conditions of a query; one that is not asked for is left out."""

    def __init__(self) -> None:
        self.values: list[Value | None] = []
        self._conditions: list[str] = []

    def add(self, condition: str, value: Value | None, *more: Value | None) -> None:
        if value is not None:
            self._conditions.append(condition)
            self.values += (value, *more)

    def among(self, column: str, wanted: tuple[Value, ...] | None) -> None:
        if wanted is not None:
            self._conditions.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            self.values += wanted

    def plain(self, condition: str) -> None:
        self._conditions.append(condition)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
