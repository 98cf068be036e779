"""The file of words: filled, searched, and emptied of what was deleted.

Owns its two connections: one that writes and one that reads, each for one thread at a time. It does not know the journal.
All of it blocks: call it in a thread.

What a person types, as a question to the index.

What is indexed: a text, and where it stands.
"""

import hashlib
import re
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal

TextKind = Literal["message", "input", "output", "title"]

PIECE = 8_000
"""Characters that are indexed together: an excerpt is sought in so many."""
LONGEST = 64 * 1024
"""Characters of one input or output."""
LONGEST_MESSAGE = 1024 * 1024
"""Characters of one message: what people look for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to be found."""

    kind: TextKind
    text: str
    at: int
    workspace: str | None = None
    thread: str | None = None
    message: str | None = None
    call: str | None = None


def pieces(text: Text) -> Iterator[Text]:
    """Of a length that can be searched for an excerpt; cut between lines where there are any."""
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


VERSION = 1
BEGIN, END = "\ue000", "\ue001"
"""Marks around what was found: characters for private use, which are taken out of what is indexed."""
_AROUND = 24
"""Words in an excerpt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where words were found."""

    kind: TextKind
    thread: str | None
    message: str | None
    call: str | None
    at: int
    excerpt: str
    """With `BEGIN` and `END` around the words."""


class WordsFile:
    """The index on disk."""

    def __init__(self, path: Path) -> None:
        self._one = threading.Lock()
        self._writer = _opened(path)
        self._reader = _connect(path)
        self._reader.execute("PRAGMA query_only = ON")

    def close(self) -> None:
        """What is under way is given up, and is done again next time."""
        self._writer.interrupt()
        with self._one:
            self._reader.close()
            self._writer.close()

    def upto(self) -> int:
        """The number of the last event it knows of."""
        return int(self._writer.execute("SELECT seq FROM upto").fetchone()[0])

    def clear(self) -> None:
        """Begin anew."""
        with self._writing():
            self._writer.execute("INSERT INTO words (words) VALUES ('delete-all')")
            self._writer.execute("DELETE FROM texts")
            self._writer.execute("UPDATE upto SET seq = 0")

    def fill(self, texts: Iterable[Text], seq: int) -> None:
        """Add texts, all or none; a new title of a conversation takes the place of the old one."""
        with self._writing():
            for text in texts:
                if text.kind == "title":
                    self._remove("thread = ? AND kind = 'title'", text.thread)
                for piece in pieces(text):
                    self._add(piece)
            self._writer.execute("UPDATE upto SET seq = ?", (seq,))

    def erase(self, threads: Iterable[str]) -> None:
        """Leave nothing of what was said in these conversations, in no byte of the file. What their calls did stays."""
        with self._writing():
            for thread in threads:
                self._remove("thread = ? AND kind IN ('message', 'title')", thread)
            # Words of removed texts stay in the index until its pieces are merged, and in the file until it is rewritten.
            self._writer.execute("INSERT INTO words (words) VALUES ('optimize')")
        with self._one:
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def find(self, typed: str, workspace: str | None, limit: int) -> list[Place]:
        """Titles first, then texts that hold the words just as typed, then those that hold them all; newest first."""
        words = words_of(typed)
        if not words:
            return []
        found: dict[int, Place] = {}
        asked = [question("title", all_of(words), workspace)]
        if 1 < len(words) <= SIDE_BY_SIDE_MAX:
            asked.append(question("text", side_by_side(words), workspace))
        asked.append(question("text", all_of(words), workspace))
        for match in asked:
            if len(found) < limit:
                found |= {at: place for at, place in self._matching(match, limit).items() if at not in found}
        return [*found.values()][:limit]

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

    def _matching(self, match: str, limit: int) -> dict[int, Place]:
        rows = self._reader.execute(_FIND, (BEGIN, END, _AROUND, match, limit)).fetchall()
        return {
            row[0]: Place(kind=row[1], thread=row[2], message=row[3], call=row[4], at=row[5], excerpt=row[6])
            for row in rows
        }

    def _add(self, piece: Text) -> None:
        text = piece.text.replace(BEGIN, "").replace(END, "").encode("utf-8", "replace").decode()
        shown = (text, "") if piece.kind == "title" else ("", text)
        values = (room_of(piece.workspace), *shown)
        named = (piece.kind, piece.thread, piece.message, piece.call, piece.at)
        added = self._writer.execute(_ADD_TEXT, (*named, *values)).lastrowid
        self._writer.execute(_ADD_WORDS, (added, *values))

    def _remove(self, where: str, thread: str | None) -> None:
        self._writer.execute(f"{_REMOVE_WORDS} WHERE {where}", (thread,))
        self._writer.execute(f"DELETE FROM texts WHERE {where}", (thread,))


def _opened(path: Path) -> sqlite3.Connection:
    """The file as this version makes it; another, or a damaged one, is thrown away: all of it can be made again."""
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


def _connect(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # a lost tail is indexed again
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


_ADD_TEXT = """
INSERT INTO texts (kind, thread, message, call, at, room, title, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_ADD_WORDS = "INSERT INTO words (rowid, room, title, text) VALUES (?, ?, ?, ?)"
_REMOVE_WORDS = """
INSERT INTO words (words, rowid, room, title, text) SELECT 'delete', id, room, title, text FROM texts"""
_FIND = """
SELECT texts.id, kind, thread, message, call, at, snippet(words, iif(kind = 'title', 1, 2), ?, ?, '…', ?)
FROM words JOIN texts ON texts.id = words.rowid WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?"""

_WORDS = re.compile(r"\w+")
_UNFINISHED = 2
"""Letters below which a word is not taken for the beginning of others: it would be that of too many."""
WORDS_MAX = 20
"""Bounds what one question may cost."""
SIDE_BY_SIDE_MAX = 8
"""Words that are sought side by side: the more, the dearer, and the surer they are found by all of them alone."""


def words_of(typed: str) -> list[str]:
    return _WORDS.findall(typed)[:WORDS_MAX]


def all_of(words: list[str]) -> str:
    """Texts that hold every word."""
    return " AND ".join([*(_quoted(word) for word in words[:-1]), _last(words[-1])])


def side_by_side(words: list[str]) -> str:
    """Texts that hold the words just as they were typed."""
    return _quoted(" ".join(words)) + ("*" if len(words[-1]) >= _UNFINISHED else "")


def room_of(workspace: str | None) -> str:
    """A word that stands for a workspace."""
    return f"w{hashlib.sha256((workspace or '').encode('utf-8', 'replace')).hexdigest()[:16]}"


def question(column: str, asked: str, workspace: str | None) -> str:
    """In one column, in one workspace or in all."""
    inside = f'{{room}} : "{room_of(workspace)}" AND ' if workspace is not None else ""
    return f"{inside}{{{column}}} : ({asked})"


def _last(word: str) -> str:
    return _quoted(word) + ("*" if len(word) >= _UNFINISHED else "")


def _quoted(words: str) -> str:
    return f'"{words}"'  # \w holds no quotation mark
