"""Writing conversations down: facts as they are told, and what flows with the next commit, at the latest 100 ms after it came.

Owns what is not yet on disk. What a failed commit took is written again, facts first and in their order, so that no
text is ever without its message.

Facts about conversations, told until they are on disk.

What of a message has to be written to disk, as statements.
"""

import json
from collections import deque

from handrail.errors import Unwritable
from handrail.store.database import Statement
from handrail.store.debounce import Linger
from handrail.store.events import Event
from handrail.store.journal import Journal
from handrail.store.threads.live_thread import State, Thread
from handrail.store.threads.message import Message, Part
from handrail.store.values import Json
from handrail.store.writer import Fate

AGAIN_SECONDS = 1.0
"""How long a disk that refused is left alone, unless somebody else writes."""


class Writing:
    """What is on its way to disk of all conversations."""

    def __init__(self, journal: Journal) -> None:
        self._outbox = journal.outbox
        self._told = Told(journal)
        self._dirty: dict[str, Thread] = {}
        self._again = Linger(AGAIN_SECONDS, journal.outbox.flowing)
        journal.outbox.join(self)

    def tell(self, event: Event) -> None:
        """A fact, after all that was said before it."""
        self.flush()
        self._told.tell(event)

    def flows(self, thread: Thread) -> None:
        """Something of it changed."""
        self._dirty[thread.id] = thread
        self._outbox.flowing()

    def flush(self) -> None:
        if not self._told.go_on():
            self._again.ask()
            return
        while self._dirty:
            _, thread = self._dirty.popitem()
            if not thread.deleted and not self._write(thread):
                return

    def fell(self) -> None:
        self._told.fell()
        self._again.ask()

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

        if self._outbox.write(statements, size_of(statements), done):
            return True
        done("lost")
        self._again.ask()
        return False

    def _lost(self, thread: Thread, messages: list[Message], states: list[State]) -> None:
        for message in messages:
            message.lost()
            if message.id not in thread.dropped:
                thread.dirty[message.id] = message
        for state in states:
            state.given = False
        self._dirty[thread.id] = thread


class Told:
    """Facts that are not known to be on disk, oldest first."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._facts: deque[Event] = deque()
        self._seqs: deque[int] = deque()
        """Of the first of them; the rest are still to be told."""

    def tell(self, event: Event) -> None:
        """Append it now, or as soon as the disk keeps up."""
        self._facts.append(event)
        self.go_on()

    def go_on(self) -> bool:
        """Tell what is still to be told; whether nothing is left."""
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
        """What is not on disk by now has to be told again."""
        while self._seqs and self._seqs[0] <= self._journal.durable:
            self._seqs.popleft()
            self._facts.popleft()
        self._seqs.clear()


def statements_of(message: Message) -> list[Statement]:
    """All that is not yet given to the disk; from now on it is."""
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
    """About what they hold in memory."""
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
