"""Facts about conversations, told until they are on disk.

Nobody waits for most of them, so nobody would learn that the disk refused one: a message would be said, shown, and
gone after a restart. What was lost is told again, in its order, before anything newer.
"""

from collections import deque

from handrail.errors import Unwritable
from handrail.store.event import Event
from handrail.store.journal import Journal


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
