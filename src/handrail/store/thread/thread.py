"""One conversation, as far as it is in memory: what is open, what is not yet on disk, and what its followers may need.

Owns its revision, which grows with every change, and the bell that followers sleep on. What is on disk and over leaves
the memory; `floor` says from which revision on everything is still here. It does not know statements (statements.py).
"""

import time
from dataclasses import dataclass

from anyio import Event as Bell

from handrail.store.thread.message import Message
from handrail.store.value import Json

KEPT = 8
"""Ended messages that stay in memory while somebody follows, so that a slow reader need not begin anew."""


@dataclass(slots=True)
class State:
    """Something that was said of the conversation as a whole."""

    data: Json
    rev: int
    given: bool = False
    """It was given to the disk."""
    safe: bool = False
    """It is there."""


class Thread:
    """A conversation in memory."""

    def __init__(self, id: str, last: int = 0) -> None:
        self.id = id
        self.last = last
        """The place of its newest message."""
        # Counted on from the time of its loading: a revision of an earlier daemon, which may have told what a crash then
        # took, is never one of ours. Small enough for a JavaScript number for two centuries.
        self.rev = time.time_ns() // 1_000
        self.floor = self.rev
        self.left = 0
        """How often something left the memory: whoever reads the disk meanwhile has to read again."""
        self.messages: dict[str, Message] = {}
        self.state: dict[str, State] = {}
        self.dropped: dict[str, int] = {}
        """Prompts that were taken back, and since when."""
        self.dirty: dict[str, Message] = {}
        self.bell = Bell()
        self.followers = 0
        self.deleted = False

    def touch(self, message: Message | None = None) -> int:
        """Something changes: the revision it has from now on."""
        self.rev += 1
        if message is not None and not self.deleted:
            self.messages[message.id] = message
            self.dirty[message.id] = message
        self.ring()
        return self.rev

    def ring(self) -> None:
        if self.followers:
            self.bell.set()
            self.bell = Bell()

    def put_state(self, name: str, data: Json) -> None:
        self.state[name] = State(data, self.touch())

    def drop(self, message: Message) -> None:
        """It is taken back, and was never said."""
        self.messages.pop(message.id, None)
        self.dirty.pop(message.id, None)
        self.dropped[message.id] = self.touch()

    def delete(self) -> None:
        self.deleted = True
        self.dirty.clear()
        self.messages.clear()
        self.state.clear()
        self.ring()

    def settle(self) -> None:
        """Let go of what is over and on disk."""
        over = [message for message in self.messages.values() if _is_over(message)]
        for message in sorted(over, key=lambda one: one.rev)[: -KEPT if self.followers else None]:
            self.floor = max(self.floor, message.rev)
            self.left += 1
            del self.messages[message.id]
        if not self.followers:
            self._settle_state()

    def _settle_state(self) -> None:
        for name in [name for name, state in self.state.items() if state.safe]:
            self.floor = max(self.floor, self.state.pop(name).rev)
            self.left += 1


def _is_over(message: Message) -> bool:
    return message.stop is not None and not message.queued and message.safe_rev == message.rev
