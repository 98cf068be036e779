"""Queries for threads, messages, sessions and images. They see committed data; `threads` adds data in memory."""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from handrail.store.query import AMONG_IDS, Queries, Value, Where, column_names, columns_of
from handrail.store.threads.thread_records import MessagePart, MessageRecord, SessionRecord, ThreadRecord
from handrail.store.values import Json, Role


class MessagePosition(NamedTuple):
    """The position of a message in its thread, and its role."""

    thread: str
    n: int
    role: Role


class ThreadQueries(Queries):
    """Queries for threads and their messages."""

    async def find(
        self, workspace: str | None = None, limit: int = 200, before: int | None = None
    ) -> list[ThreadRecord]:
        """Return threads, latest update first; `before` is the `updated_at` of the last one returned."""
        where = Where()
        where.add("threads.workspace = ?", workspace)
        where.add("threads.updated_at < ?", before)
        rest = f"{where} ORDER BY threads.updated_at DESC, threads.opened_seq DESC LIMIT ?"
        return await self._all(thread_of, f"{_THREADS}{rest}", (*where.values, limit))

    async def get(self, id: str) -> ThreadRecord | None:
        found = await self._all(thread_of, f"{_THREADS} WHERE threads.id = ?", (id,))
        return found[0] if found else None

    async def last_positions(self) -> dict[str, int]:
        """Return the position of the newest message of every thread."""
        return dict(await self._all(lambda row: (str(row[0]), int(row[1])), _PLACES))

    async def messages(
        self, thread: str, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> list[MessageRecord]:
        """Return the last `limit` messages at positions between `after` and `before` (exclusive), oldest first."""
        where = Where()
        where.add("thread = ?", thread)
        where.add("n > ?", after)
        where.add("n < ?", before)
        which = f"SELECT * FROM messages{where} ORDER BY n DESC LIMIT ?"
        values = (*where.values, -1 if limit is None else limit)
        return await self._reader.read(lambda db: messages_in(db, which, values))

    async def open_messages(self) -> list[MessageRecord]:
        """Return unfinished and queued messages with their full text; used at a restart."""
        return await self._reader.read(_open_messages)

    async def message_position(self, message: str) -> tuple[str, int] | None:
        """Return the message's thread and its position in it."""
        sql = "SELECT thread, n FROM messages WHERE id = ?"
        found = await self._all(lambda row: (str(row[0]), int(row[1])), sql, (message,))
        return found[0] if found else None

    async def state(self, thread: str) -> dict[str, Json]:
        sql = "SELECT name, data FROM thread_state WHERE thread = ?"
        return dict(await self._all(lambda row: (str(row[0]), json.loads(row[1])), sql, (thread,)))

    async def states(self, threads: Iterable[str], names: Iterable[str]) -> dict[str, dict[str, Json]]:
        """Return some of the state of several threads, by thread and name."""
        sql = f"SELECT thread, name, data FROM thread_state WHERE thread {AMONG_IDS} AND name {AMONG_IDS}"
        found: dict[str, dict[str, Json]] = defaultdict(dict)
        values = (json.dumps([*threads]), json.dumps([*names]))
        for thread, name, data in await self._all(
            lambda row: (str(row[0]), str(row[1]), str(row[2])), sql, values
        ):
            found[thread][name] = json.loads(data)
        return found

    async def sessions(self, thread: str) -> dict[str, SessionRecord]:
        """Return the sessions of a thread by agent."""
        sql = "SELECT * FROM sessions WHERE thread = ?"
        return dict(await self._all(lambda row: (str(row["agent"]), session_of(row)), sql, (thread,)))

    async def threads_of_sessions(self, agent: str) -> dict[str, str]:
        """Return the thread of each session of an agent, by the session's id."""
        sql = "SELECT session, thread FROM sessions WHERE agent = ? ORDER BY bound_at"
        return dict(await self._all(lambda row: (str(row[0]), str(row[1])), sql, (agent,)))

    async def messages_by_id(self, messages: Iterable[str]) -> dict[str, MessageRecord]:
        """Return messages with their parts, by id. Unknown ids are left out."""
        wanted = [*messages]
        if not wanted:
            return {}  # without a switch to a thread: the search index asks after every batch of events
        which = f"SELECT * FROM messages WHERE id {AMONG_IDS}"
        values = (json.dumps(wanted),)
        found = await self._reader.read(lambda db: messages_in(db, which, values))
        return {message.id: message for message in found}

    async def message_positions(self, messages: Iterable[str]) -> dict[str, MessagePosition]:
        sql = f"SELECT id, thread, n, role FROM messages WHERE id {AMONG_IDS}"
        return await self._by_id(
            sql, messages, lambda row: MessagePosition(row["thread"], row["n"], row["role"])
        )

    async def workspaces(self, threads: Iterable[str]) -> dict[str, str | None]:
        sql = f"SELECT id, workspace FROM threads WHERE id {AMONG_IDS}"
        return await self._by_id(sql, threads, lambda row: row["workspace"])

    async def titles(self, threads: Iterable[str]) -> dict[str, str]:
        return await self._by_id(f"SELECT id, title FROM threads WHERE id {AMONG_IDS}", threads, _title)

    async def images(self) -> frozenset[str]:
        """Return the hashes of all images that messages refer to."""
        found = await self._all(_named_images, _SHOWN)
        return frozenset(name for names in found for name in names)


def messages_in(db: sqlite3.Connection, which: str, values: tuple[Value | None, ...]) -> list[MessageRecord]:
    """Return the messages that `which` selects, with their parts, in the reverse order of `which`."""
    rows = db.execute(which, values).fetchall()
    parts: defaultdict[str, list[MessagePart]] = defaultdict(list)
    wanted = json.dumps([row["id"] for row in rows])
    for row in db.execute(_PARTS, (wanted,)):
        parts[row["message"]].append(part_of(row))
    return [message_of(row, parts[row["id"]]) for row in reversed(rows)]


def _open_messages(db: sqlite3.Connection) -> list[MessageRecord]:
    which = "SELECT * FROM messages WHERE ended_at IS NULL OR queued ORDER BY thread DESC, n DESC"
    return [_grown(db, message) for message in messages_in(db, which, ())]


def _grown(db: sqlite3.Connection, message: MessageRecord) -> MessageRecord:
    """Append the text in `growths` to the message's parts."""
    texts = {part.n: [part.text] for part in message.parts}
    for n, text in db.execute(_GROWTHS, (message.id,)):
        texts[n].append(text)
    return replace(message, parts=tuple(replace(part, text="".join(texts[part.n])) for part in message.parts))


_RUNS = "SELECT id FROM operations WHERE thread = threads.id AND ended_at IS NULL ORDER BY opened_seq DESC LIMIT 1"
_STOP = "SELECT stop FROM messages WHERE thread = threads.id AND NOT queued ORDER BY n DESC LIMIT 1"
_THREADS = f"""
SELECT threads.*, ({_RUNS}) AS operation, ({_STOP}) AS stop,
       (SELECT count(*) FROM messages WHERE thread = threads.id) AS messages,
       (SELECT count(*) FROM messages WHERE thread = threads.id AND (ended_at IS NULL OR queued) AND queued) AS queued
FROM threads"""
_PLACES = "SELECT id, coalesce((SELECT max(n) FROM messages WHERE thread = threads.id), 0) FROM threads"
_PARTS = "SELECT parts.* FROM json_each(?) AS wanted JOIN parts ON parts.message = wanted.value ORDER BY parts.message, parts.n"
_GROWTHS = "SELECT n, text FROM growths WHERE message = ? ORDER BY n, at"


def _title(row: sqlite3.Row) -> str:
    return str(row["title"])


_NAME = re.compile(r'"image": ?"([0-9a-f]{64})"')


def _named_images(row: sqlite3.Row) -> list[str]:
    return _NAME.findall(row["data"])


_SHOWN = """SELECT data FROM parts WHERE kind IN ('image', 'call') AND instr(data, '"image"')"""


def thread_of(row: sqlite3.Row) -> ThreadRecord:
    return ThreadRecord(**columns_of(row, _THREAD_COLUMNS))


def session_of(row: sqlite3.Row) -> SessionRecord:
    return SessionRecord(session=row["session"], upto=row["upto"])


def message_of(row: sqlite3.Row, parts: Iterable[MessagePart]) -> MessageRecord:
    return MessageRecord(queued=bool(row["queued"]), parts=tuple(parts), **columns_of(row, _MESSAGE_COLUMNS))


def part_of(row: sqlite3.Row) -> MessagePart:
    data = row["data"]
    return MessagePart(
        n=row["n"], kind=row["kind"], text=row["text"], data={} if data == "{}" else json.loads(data)
    )


_THREAD_COLUMNS = column_names(ThreadRecord)
_MESSAGE_COLUMNS = column_names(MessageRecord, "queued", "parts")
