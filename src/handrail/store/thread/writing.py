"""Writing conversations down: facts as they are told, and what flows with the next commit, at the latest 100 ms after it came.

Owns what is not yet on disk. What a failed commit took is written again, facts first and in their order, so that no
text is ever without its message.
"""

from handrail.store.event import Event
from handrail.store.journal import Journal
from handrail.store.linger import Linger
from handrail.store.thread.message import Message
from handrail.store.thread.statements import size_of, state_statement, statements_of
from handrail.store.thread.thread import State, Thread
from handrail.store.thread.told import Told
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
