"""Query helpers: one read connection for async code, a base class for queries, and optional WHERE conditions.

Knows no table. Each read runs in a worker thread, one at a time per connection.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from handrail.errors import BadRecord
from handrail.store.database import open_reader
from handrail.store.values import Caller

T = TypeVar("T")
Value = str | int
AMONG_IDS = "IN (SELECT value FROM json_each(?))"
"""Condition on a column of ids; its one parameter is a JSON array of ids."""


class Reader:
    """One read connection. A query must fetch all its rows: an open cursor blocks the WAL checkpoint."""

    def __init__(self, path: Path, *, lazy: bool = False) -> None:
        """With `lazy`, the connection is opened at the first read."""
        self._path = path
        self._connection = None if lazy else open_reader(path)
        self._one = CapacityLimiter(1)

    def another(self) -> "Reader":
        """A reader of the same file that does not wait for this one."""
        return Reader(self._path, lazy=True)

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await to_thread.run_sync(self._run, query, limiter=self._one)

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = open_reader(self._path)
        return query(self._connection)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class Queries:
    """Base class for the queries of one noun."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def _all(
        self, make: Callable[[sqlite3.Row], T], sql: str, values: Iterable[Value | None] = ()
    ) -> list[T]:
        """Return `make(row)` for every matching row. `make` runs in the reader's thread."""
        given = tuple(values)
        return await self._reader.read(lambda db: _make_all(make, db.execute(sql, given).fetchall(), sql))

    async def _by_id(self, sql: str, ids: Iterable[str], make: Callable[[sqlite3.Row], T]) -> dict[str, T]:
        """Return `make(row)` by id. `sql` ends in `WHERE id AMONG_IDS`. Unknown ids are left out."""
        wanted = [*ids]
        if not wanted:
            return {}  # without a switch to a thread
        return dict(await self._all(lambda row: (str(row["id"]), make(row)), sql, (json.dumps(wanted),)))


def _make_all(make: Callable[[sqlite3.Row], T], rows: list[sqlite3.Row], sql: str) -> list[T]:
    """Return `make(row)` for each row. Raises BadRecord for a row with an invalid value."""
    try:
        return [make(row) for row in rows]
    except (ValueError, TypeError, LookupError):
        for row in rows:
            _check_row(make, row, sql)
        raise


def _check_row(make: Callable[[sqlite3.Row], T], row: sqlite3.Row, sql: str) -> None:
    try:
        make(row)
    except (ValueError, TypeError, LookupError) as error:
        table = sql.partition("FROM ")[2].split()
        name = f"{row.keys()[0]} {str(row[0])[:80]!r}"
        raise BadRecord(table[0] if table else "?", name, type(error).__name__) from error


class Where:
    """The conditions of a query; `add` and `among` skip a condition whose value is None."""

    def __init__(self) -> None:
        self.values: list[Value | None] = []
        self._conditions: list[str] = []

    def copy(self) -> "Where":
        other = Where()
        other.values, other._conditions = [*self.values], [*self._conditions]
        return other

    def add(self, condition: str, value: Value | None, *more: Value | None) -> None:
        if value is not None:
            self._conditions.append(condition)
            self.values += (value, *more)

    def among(self, column: str, wanted: tuple[Value, ...] | None) -> None:
        if wanted is not None:
            self._conditions.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            self.values += wanted

    def given(self, condition: str, values: Iterable[Value]) -> None:
        """Add a condition with any number of values."""
        self._conditions.append(condition)
        self.values += values

    def plain(self, condition: str) -> None:
        self._conditions.append(condition)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""


def caller_of(row: sqlite3.Row) -> Caller:
    return Caller(key=row["caller_key"], **columns_of(row, _CALLER_COLUMNS))


def columns_of(row: sqlite3.Row, names: Iterable[str]) -> dict[str, Any]:
    values = dict(
        zip(row.keys(), row, strict=True)
    )  # `row[name]` compares the name with that of every column
    return {name: values[name] for name in names}


def column_names(record: type, *apart: str) -> tuple[str, ...]:
    """Return the fields that are columns of the same name: all but `apart`."""
    return tuple(field.name for field in fields(record) if field.name not in apart)


_CALLER_COLUMNS = column_names(Caller, "key")
