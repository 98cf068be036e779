"""The search index file: an SQLite FTS5 database of texts, with its query syntax.

Owns two connections, a writer and a reader, each used by one thread at a time. Does not know the journal. Everything
blocks: call it in a thread.
"""

import hashlib
import re
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

from handrail.lazy_dataclass import dataclass

TextKind = Literal["message", "input", "output", "title", "terminal"]

PIECE = 8_000
"""Characters indexed as one row: bounds the text that is scanned for an excerpt."""
LONGEST = 64 * 1024
"""Characters indexed of one input or output: bounds the size of the index."""
LONGEST_MESSAGE = 1024 * 1024
"""Characters indexed of one message; more than of calls, because people mostly search messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to index, and where it belongs."""

    kind: TextKind
    text: str
    at: int
    workspace: str | None = None
    thread: str | None = None
    message: str | None = None
    call: str | None = None
    terminal: str | None = None


def pieces(text: Text) -> Iterator[Text]:
    """Split a text into rows of at most `PIECE` characters, at a line break or a space if possible."""
    if 0 < len(text.text) <= PIECE:
        yield text
        return
    rest = text.text[: LONGEST_MESSAGE if text.kind == "message" else LONGEST]
    while rest:
        cut = len(rest) if len(rest) <= PIECE else _between(rest)
        yield replace(text, text=rest[:cut])
        rest = rest[cut:]


def _between(text: str) -> int:
    for gap in ("\n", " "):
        cut = text.rfind(gap, PIECE // 2, PIECE)
        if cut > 0:
            return cut + 1
    return PIECE


VERSION = 2
BEGIN, END = "\ue000", "\ue001"
"""Marks around matches in an excerpt: private-use characters, removed from indexed text."""
_AROUND = 24
"""Tokens in an excerpt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A match and where it belongs."""

    kind: TextKind
    thread: str | None
    message: str | None
    call: str | None
    terminal: str | None
    at: int
    excerpt: str
    """The text around the match, with `BEGIN` and `END` around each matching word."""


class SearchFile:
    """The index on disk, with one lock for all writes."""

    def __init__(self, path: Path) -> None:
        self._one = threading.Lock()
        self._writer = _opened(path)
        self._reader = _open_reader(path)
        self._counter: sqlite3.Connection | None = None
        self._path = path

    def close(self) -> None:
        """Interrupt a running write, which the next start repeats, and close all connections."""
        self._writer.interrupt()
        with self._one:
            self._reader.close()
            if self._counter is not None:
                self._counter.close()
            self._writer.close()

    def upto(self) -> int:
        """Return the number of the last indexed event."""
        return int(self._writer.execute("SELECT seq FROM upto").fetchone()[0])

    def clear(self) -> None:
        """Remove everything; indexing restarts from the first event."""
        with self._writing():
            self._writer.execute("INSERT INTO words (words) VALUES ('delete-all')")
            self._writer.execute("DELETE FROM texts")
            self._writer.execute("UPDATE upto SET seq = 0")

    def fill(self, texts: Iterable[Text], seq: int) -> None:
        """Add texts in one transaction and record `seq` as indexed. A thread's new title replaces the old one."""
        with self._writing():
            for text in texts:
                if text.kind == "title":
                    self._remove("thread = ? AND kind = 'title'", text.thread)
                for piece in pieces(text):
                    self._add(piece)
            self._writer.execute("UPDATE upto SET seq = ?", (seq,))

    def erase(self, threads: Iterable[str]) -> None:
        """Remove the messages and titles of these threads, also from free pages of the file. Calls stay."""
        with self._writing():
            for thread in threads:
                self._remove("thread = ? AND kind IN ('message', 'title')", thread)
            # Removed words stay in the FTS index until its segments are merged, and in the file until VACUUM.
            self._writer.execute("INSERT INTO words (words) VALUES ('optimize')")
        with self._one:
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def calls_before(self, at: int, after: int, limit: int = 1000) -> list[tuple[int, str]]:
        """The ids and calls of the texts of calls before this time, in the order of ids, after the id `after`."""
        with self._one:
            return self._writer.execute(_OLD_CALLS, (after, at, limit)).fetchall()

    def remove(self, ids: Iterable[int]) -> None:
        """Remove the texts with these ids."""
        with self._writing():
            for text in ids:
                self._remove("id = ?", text)

    def find(
        self, typed: str, workspace: str | None, limit: int, narrow: "Narrow | None" = None
    ) -> list[Place]:
        """Return matching titles, then texts with the exact phrase, then texts with all words; each newest first."""
        narrow = narrow or Narrow()
        words = words_of(typed)
        if not words and not narrow.phrases:
            return []
        found: dict[int, Place] = {}
        asked = [question("title", narrow.expression(all_of(words)), workspace)]
        if 1 < len(words) <= SIDE_BY_SIDE_MAX:
            asked.append(question("text", narrow.expression(side_by_side(words)), workspace))
        asked.append(question("text", narrow.expression(all_of(words)), workspace))
        for match in asked:
            if len(found) < limit:
                places = self._matching(match, limit, narrow)
                found |= {at: place for at, place in places.items() if at not in found}
        return [*found.values()][:limit]

    def calls_with(
        self, words: str, phrase: bool, kinds: Sequence[str], most: int | None
    ) -> list[tuple[str, int]]:
        """Return the calls whose input or output has all these words, or this phrase, and when; newest first.

        Without `most` there may be very many, so this has its own connection, and a search need not wait for it.
        """
        typed = words_of(words)
        if not typed:
            return []
        expression = question("text", side_by_side(typed) if phrase else all_of(typed), None)
        listed = ", ".join("?" * len(kinds))
        sql = f"{_CALLS_WITH} AND kind IN ({listed}) ORDER BY words.rowid DESC LIMIT ?"
        if most is not None:
            return self._reader.execute(sql, (expression, *kinds, most)).fetchall()
        if self._counter is None:
            self._counter = _open_reader(self._path)
        return self._counter.execute(sql, (expression, *kinds, -1)).fetchall()

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction."""
        with self._one:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _matching(self, match: str, limit: int, narrow: "Narrow") -> dict[int, Place]:
        conditions, values = narrow.conditions()
        sql = f"{_FIND}{conditions} ORDER BY words.rowid DESC LIMIT ?"
        rows = self._reader.execute(sql, (BEGIN, END, _AROUND, match, *values, limit)).fetchall()
        return {row[0]: Place(**dict(zip(_PLACE, row[1:], strict=True))) for row in rows}

    def _add(self, piece: Text) -> None:
        text = piece.text.replace(BEGIN, "").replace(END, "").encode("utf-8", "replace").decode()
        shown = (text, "") if piece.kind == "title" else ("", text)
        values = (room_of(piece.workspace), *shown)
        named = (piece.kind, piece.thread, piece.message, piece.call, piece.terminal, piece.at)
        added = self._writer.execute(_ADD_TEXT, (*named, *values)).lastrowid
        self._writer.execute(_ADD_WORDS, (added, *values))

    def _remove(self, where: str, value: str | int | None) -> None:
        self._writer.execute(f"{_REMOVE_WORDS} WHERE {where}", (value,))
        self._writer.execute(f"DELETE FROM texts WHERE {where}", (value,))


def _opened(path: Path) -> sqlite3.Connection:
    """Open the index; recreate it if it is damaged or of another version. It can be rebuilt from the journal."""
    try:
        connection = _connect(path)
        if connection.execute("PRAGMA user_version").fetchone()[0] == VERSION:
            connection.execute("SELECT seq FROM upto").fetchone()
            return connection
        connection.close()
    except sqlite3.DatabaseError:
        pass
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    connection = _connect(path)
    connection.executescript(resources.files("handrail.store").joinpath("search_schema.sql").read_text())
    return connection


def _open_reader(path: Path) -> sqlite3.Connection:
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # events lost in a crash are indexed again
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


_ADD_TEXT = """
INSERT INTO texts (kind, thread, message, call, terminal, at, room, title, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_OLD_CALLS = "SELECT id, call FROM texts WHERE id > ? AND call IS NOT NULL AND at < ? ORDER BY id LIMIT ?"
_ADD_WORDS = "INSERT INTO words (rowid, room, title, text) VALUES (?, ?, ?, ?)"
_REMOVE_WORDS = """
INSERT INTO words (words, rowid, room, title, text) SELECT 'delete', id, room, title, text FROM texts"""
_FIND = """
SELECT texts.id, kind, thread, message, call, terminal, at, snippet(words, iif(kind = 'title', 1, 2), ?, ?, '…', ?)
FROM words JOIN texts ON texts.id = words.rowid WHERE words MATCH ?"""
_PLACE = ("kind", "thread", "message", "call", "terminal", "at", "excerpt")
_CALLS_WITH = "SELECT call, at FROM words JOIN texts ON texts.id = words.rowid WHERE words MATCH ?"

_WORDS = re.compile(r"\w+")
_UNFINISHED = 2
"""Minimum letters of a last word to match as a prefix: shorter ones match too many words."""
WORDS_MAX = 20
"""Bounds the cost of one query."""
SIDE_BY_SIDE_MAX = 8
"""Maximum words of a phrase query: longer ones cost more, and the query for all words finds them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """The conditions of a search besides its plain words."""

    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """Words and phrases that a text must not have."""
    kinds: tuple[str, ...] = ()
    """Empty for all."""
    since: int | None = None
    before: int | None = None

    def expression(self, words: str) -> str:
        """Add the phrases and the excluded words to an FTS expression, which may be empty."""
        required = [words, *(side_by_side(words_of(phrase)) for phrase in self.phrases if words_of(phrase))]
        wanted = " AND ".join(f"({one})" for one in required if one)
        unwanted = " OR ".join(f"({side_by_side(words_of(one))})" for one in self.excluded if words_of(one))
        return f"({wanted}) NOT ({unwanted})" if unwanted else wanted

    def conditions(self) -> tuple[str, list[str | int]]:
        asked = [("at >= ?", self.since), ("at < ?", self.before)]
        sql = [condition for condition, value in asked if value is not None]
        values: list[str | int] = [value for _, value in asked if value is not None]
        if self.kinds:
            sql.append(f"kind IN ({', '.join('?' * len(self.kinds))})")
        return "".join(f" AND {one}" for one in sql), [*values, *self.kinds]


def words_of(typed: str) -> list[str]:
    return _WORDS.findall(typed)[:WORDS_MAX]


def all_of(words: list[str]) -> str:
    """FTS expression: texts with every word; the last one may be a prefix. Empty without words."""
    if not words:
        return ""
    return " AND ".join([*(_quoted(word) for word in words[:-1]), _last(words[-1])])


def side_by_side(words: list[str]) -> str:
    """FTS expression: texts with this exact phrase; the last word may be a prefix."""
    return _quoted(" ".join(words)) + ("*" if len(words[-1]) >= _UNFINISHED else "")


@lru_cache(maxsize=256)
def room_of(workspace: str | None) -> str:
    """Return the token that stands for a workspace in the `room` column."""
    return f"w{hashlib.sha256((workspace or '').encode('utf-8', 'replace')).hexdigest()[:16]}"


def question(column: str, asked: str, workspace: str | None) -> str:
    """Restrict an FTS expression to one column, and to one workspace unless it is None."""
    inside = f'{{room}} : "{room_of(workspace)}" AND ' if workspace is not None else ""
    return f"{inside}{{{column}}} : ({asked})"


def _last(word: str) -> str:
    return _quoted(word) + ("*" if len(word) >= _UNFINISHED else "")


def _quoted(words: str) -> str:
    return f'"{words}"'  # \w matches no quotation mark
