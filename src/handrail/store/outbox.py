"""What is on its way to the writer thread: facts, and what flows beside them, in one queue.

Owns how long each may stay in memory, and how much of both. What flows (thread/writing.py) is asked for its text with every
order, so that it shares the commits of facts, in its place among them, and costs one of its own only when nothing else
happens. It does not know numbers (journal.py) nor SQL (writer.py).
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from handrail.errors import Unwritable
from handrail.store.event import Event
from handrail.store.files import Files
from handrail.store.linger import Linger
from handrail.store.loop import soon_here
from handrail.store.projection.statement import Statement
from handrail.store.writer import Change, Fate, Row, Writer

PENDING_BYTES = 64 * 1024 * 1024
"""What a disk that hangs may hold in memory before appends are refused."""
LINGER_SECONDS = 0.01
"""How long an event that nobody waits for may stay in memory, so that those of one call share one commit."""
FLOW_SECONDS = 0.1
"""How long what flows may stay in memory: so much of it a crash may take."""


class Flow(Protocol):
    """Something that is written along with the facts, and knows itself what of it is on disk."""

    def flush(self) -> None:
        """`write` what is not yet written. Called often: with nothing to write it must cost nothing."""
        ...

    def fell(self) -> None:
        """A commit failed: what was put or written and is not known to be on disk never will be."""
        ...


class Outbox:
    """Facts and changes that wait for the writer. Belongs to the event loop it was made in."""

    def __init__(
        self,
        files: Files,
        landed: Callable[[Sequence[Row]], object],
        fell: Callable[[str], object],
    ) -> None:
        self._tell_landed = landed
        self._tell_fell = fell
        self._era = 0
        self._pending = 0
        self._unordered = False
        self._changes: deque[Change] = deque()
        self._flows: list[Flow] = []
        self._facts_linger = Linger(LINGER_SECONDS, self.order)
        self._flows_linger = Linger(FLOW_SECONDS, self.order)
        soon = soon_here()
        self._writer = Writer(
            files,
            lambda rows, refused: soon(self._landed, rows, refused),
            lambda reason: soon(self._fell, reason),
        )

    def room(self, size: int) -> None:
        """Raise `Unwritable` when memory should not hold so much more."""
        if self._is_full(size):
            raise Unwritable("the disk does not keep up")

    def put(self, seq: int, at: int, event: Event, payload: str) -> None:
        """Queue a fact, for which there is room; it is written with the next order, or soon."""
        self._pending += len(payload)
        self._writer.put(Row(seq, at, event, payload, self._era))
        self._unordered = True
        self._facts_linger.ask()

    def join(self, flow: Flow) -> None:
        """Have something that flows written from now on."""
        self._flows.append(flow)

    def flowing(self) -> None:
        """Something flows: its `flush` is called with the next order, at the latest after `FLOW_SECONDS`."""
        self._flows_linger.ask()

    def write(self, statements: Iterable[Statement], size: int, done: Callable[[Fate], object]) -> bool:
        """Have statements that are no fact's written, between what was put before and what comes after.

        False when the disk does not keep up: they are not queued then.
        """
        if self._is_full(size):
            return False
        self._pending += size
        change = Change(tuple(statements), size, self._era, done)
        self._changes.append(change)
        self._writer.put(change)
        self._unordered = True
        self._flows_linger.ask()
        return True

    def order(self) -> None:
        """Have the writer write all there is, unless it was told already."""
        self.flush()
        self._facts_linger.met()
        self._flows_linger.met()
        if self._unordered:
            self._unordered = False
            self._writer.write()

    def flush(self) -> None:
        """Queue what flows."""
        for flow in self._flows:
            flow.flush()

    def close(self) -> None:
        """Write what is queued and let go of the files. Blocks."""
        self._writer.close()

    def _is_full(self, size: int) -> bool:
        return self._pending + size > PENDING_BYTES and self._pending > 0

    def _landed(self, rows: Sequence[Row | Change], refused: frozenset[Change]) -> None:
        facts = [row for row in rows if isinstance(row, Row)]
        self._pending -= sum(len(row.payload) for row in facts)
        self._tell_landed(facts)
        for change in rows:
            if isinstance(change, Change):
                self._pending -= change.size
                self._changes.popleft()
                change.done("refused" if change in refused else "landed")

    def _fell(self, reason: str) -> None:
        self._era += 1
        self._pending = 0
        self._tell_fell(reason)
        changes, self._changes = self._changes, deque()
        for change in changes:
            change.done("lost")
        for flow in self._flows:
            flow.fell()
