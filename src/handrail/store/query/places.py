"""Questions about many things at once: where they stand, and what is shown of them in a list of what was found."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from handrail.store.query.asking import Asking
from handrail.store.query.threads import messages_in
from handrail.store.thread.record import MessageRecord
from handrail.store.value import Role

T = TypeVar("T")


class Place(NamedTuple):
    """Where a call was made."""

    workspace: str | None
    thread: str | None


class Standing(NamedTuple):
    """Where a message stands, and who said it."""

    thread: str
    n: int
    role: Role


class Places(Asking):
    """What is known of many things, by their ids. What is not there is left out."""

    async def said(self, messages: Iterable[str]) -> dict[str, MessageRecord]:
        """Messages, whole."""
        which = f"SELECT * FROM messages WHERE id {_AMONG}"
        values = (json.dumps([*messages]),)
        found = await self._reader.read(lambda db: messages_in(db, which, values))
        return {message.id: message for message in found}

    async def standing(self, messages: Iterable[str]) -> dict[str, Standing]:
        sql = f"SELECT id, thread, n, role FROM messages WHERE id {_AMONG}"
        return await self._by_id(sql, messages, lambda row: Standing(row["thread"], row["n"], row["role"]))

    async def workspaces_of(self, threads: Iterable[str]) -> dict[str, str | None]:
        sql = f"SELECT id, workspace FROM threads WHERE id {_AMONG}"
        return await self._by_id(sql, threads, lambda row: row["workspace"])

    async def titles_of(self, threads: Iterable[str]) -> dict[str, str]:
        return await self._by_id(f"SELECT id, title FROM threads WHERE id {_AMONG}", threads, _title)

    async def places_of(self, calls: Iterable[str]) -> dict[str, Place]:
        sql = f"SELECT id, workspace, thread FROM calls WHERE id {_AMONG}"
        return await self._by_id(sql, calls, lambda row: Place(row["workspace"], row["thread"]))

    async def titles_of_calls(self, calls: Iterable[str]) -> dict[str, str]:
        return await self._by_id(f"SELECT id, title FROM calls WHERE id {_AMONG}", calls, _title)

    async def _by_id(self, sql: str, ids: Iterable[str], make: Callable[[sqlite3.Row], T]) -> dict[str, T]:
        return dict(await self._all(lambda row: (str(row["id"]), make(row)), sql, (json.dumps([*ids]),)))


def _title(row: sqlite3.Row) -> str:
    return str(row["title"])


_AMONG = "IN (SELECT value FROM json_each(?))"
