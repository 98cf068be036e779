"""Write threads to disk: events in order, streamed text with the next commit, at the latest after 100 ms.

Owns everything that is not yet on disk. After a failed commit it writes the lost data again, events first and in
their order, so that no text is ever stored without its message.
"""

import json
from collections import deque

from handrail.errors import Unwritable
from handrail.store.database import Statement
from handrail.store.debounce import Debounce
from handrail.store.events import Event
from handrail.store.journal import Journal
from handrail.store.threads.live_thread import State, Thread
from handrail.store.threads.message import Message, Part
from handrail.store.values import Json
from handrail.store.writer import Fate

AGAIN_SECONDS = 1.0
"""Delay before a retry after a failed write, unless another write comes first."""


class ThreadWriter:
    """Writes the events and streamed changes of all threads through the journal."""

    def __init__(self, journal: Journal) -> None:
        self._queue = journal.queue
        self._told = PendingEvents(journal)
        self._dirty: dict[str, Thread] = {}
        self._again = Debounce(AGAIN_SECONDS, journal.queue.schedule_flush)
        journal.queue.add_source(self)

    def append(self, event: Event) -> None:
        """Append an event, after the streamed changes that precede it."""
        self.flush()
        self._told.append(event)

    def mark_dirty(self, thread: Thread) -> None:
        """Note that a thread has streamed changes."""
        self._dirty[thread.id] = thread
        self._queue.schedule_flush()

    def flush(self) -> None:
        if not self._told.go_on():
            self._again.request()
            return
        while self._dirty:
            _, thread = self._dirty.popitem()
            if not thread.deleted and not self._write(thread):
                return

    def fell(self) -> None:
        self._told.fell()
        self._again.request()

    def _write(self, thread: Thread) -> bool:
        messages = [(message, message.rev) for message in thread.dirty.values()]
        states = [(name, state) for name, state in thread.state.items() if not state.given]
        thread.dirty.clear()
        statements = [one for message, _ in messages for one in statements_of(message)]
        for name, state in states:
            state.given = True
            statements.append(state_statement(thread.id, name, state.data))

        def done(fate: Fate) -> None:
            if fate == "lost":
                self._lost(thread, [message for message, _ in messages], [state for _, state in states])
                return
            for message, rev in messages:
                message.safe_rev = rev
            for _, state in states:
                state.safe = True
            thread.settle()

        if self._queue.write(statements, size_of(statements), done):
            return True
        done("lost")
        self._again.request()
        return False

    def _lost(self, thread: Thread, messages: list[Message], states: list[State]) -> None:
        for message in messages:
            message.lost()
            if message.id not in thread.dropped:
                thread.dirty[message.id] = message
        for state in states:
            state.given = False
        self._dirty[thread.id] = thread


class PendingEvents:
    """Events that are not known to be on disk, oldest first; appended again after a failed commit."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._facts: deque[Event] = deque()
        self._seqs: deque[int] = deque()
        """Numbers of the first events in `_facts`; the rest are not appended yet."""

    def append(self, event: Event) -> None:
        """Append the event now, or as soon as the journal accepts it."""
        self._facts.append(event)
        self.go_on()

    def go_on(self) -> bool:
        """Append the remaining events; return whether all are appended."""
        while self._seqs and self._seqs[0] <= self._journal.durable:
            self._seqs.popleft()
            self._facts.popleft()
        while len(self._seqs) < len(self._facts):
            try:
                self._seqs.append(self._journal.append(self._facts[len(self._seqs)]))
            except Unwritable:
                return False
        return True

    def fell(self) -> None:
        """Mark every event that is not on disk as not appended."""
        while self._seqs and self._seqs[0] <= self._journal.durable:
            self._seqs.popleft()
            self._facts.popleft()
        self._seqs.clear()


def statements_of(message: Message) -> list[Statement]:
    """Return statements for the unwritten parts, and mark those parts as written."""
    whole = message.stop is not None
    return [
        statement
        for part in message.parts
        if part.safe is None or part.safe < part.length or (whole and part.grown)
        for statement in (
            _whole(message.id, part) if whole or part.safe is None else _grown(message.id, part)
        )
    ]


def state_statement(thread: str, name: str, data: Json) -> Statement:
    return (_STATE, (thread, name, json.dumps(data), thread))


def size_of(statements: list[Statement]) -> int:
    """Return their approximate size in memory, in bytes."""
    return sum(len(value) for _, values in statements for value in values if isinstance(value, str))


def _whole(message: str, part: Part) -> list[Statement]:
    part.safe, part.grown = part.length, False
    values = (message, part.n, part.kind, part.text, json.dumps(part.data), message)
    return [(_PUT, values), (_FOLDED, (message, part.n))]


def _grown(message: str, part: Part) -> list[Statement]:
    at = part.safe or 0
    part.safe, part.grown = part.length, True
    return [(_GROWN, (message, part.n, at, part.text[at:], message))]


_KNOWN = "WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?)"
_PUT = f"INSERT OR REPLACE INTO parts (message, n, kind, text, data) SELECT ?, ?, ?, ?, ? {_KNOWN}"
_FOLDED = "DELETE FROM growths WHERE message = ? AND n = ?"
_GROWN = f"INSERT OR IGNORE INTO growths (message, n, at, text) SELECT ?, ?, ?, ? {_KNOWN}"
_STATE = """
INSERT OR REPLACE INTO thread_state (thread, name, data)
SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?)"""
