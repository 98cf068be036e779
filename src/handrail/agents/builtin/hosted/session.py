"""One session: a conversation that is open, and its operation where one is under way.

Owns that there is one operation at a time, and that a new prompt waits until the one before has really ended. Nothing is
kept of an operation but its root: cancelling is that scope's. It does not know how sessions are found (program.py), nor
what is done with a prompt (work.py).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from handrail.agents.builtin.hosted.kept import NoSuchSession
from handrail.agents.builtin.thinking.activity import Activity, operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.agents.builtin.hosted.blocks import Block
    from handrail.agents.builtin.hosted.speech import Speech
    from handrail.agents.builtin.hosted.work import Work
    from handrail.agents.builtin.thinking.budget import Stop
    from handrail.agents.builtin.tools.wanted import Given

FLUSH_SECONDS = 30.0
"""For a host to hear the end of an operation before it is answered; bounds the wait for one that does not read."""


@dataclass(frozen=True, slots=True)
class _Now:
    """The operation under way."""

    root: Activity
    over: anyio.Event
    """It has ended, and all it said is sent."""


class Session:
    """Open from `live` to `close`."""

    def __init__(self, id: str, speech: Speech, work: Work) -> None:
        self.id, self.work, self._speech = id, work, speech
        self._now: _Now | None = None
        self._closing, self._closed = anyio.Event(), anyio.Event()

    async def live(self, given: Sequence[Given], loaded: anyio.Event) -> None:
        """All that has to run while it is open. To be started as a task of its own; `loaded`: what is slow to load is."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._speech.deliver)
                group.start_soon(self.work.prepare, given, loaded)
                await self._closing.wait()
                await self._end_operation()
                await self._speech.flushed()
                group.cancel_scope.cancel()
        except* Exception as broken:  # a fault of ours; the other sessions are not to end with this one
            logging.getLogger(__name__).error("Session %s broke", self.id, exc_info=broken)
            self._closing.set()
            self.cancel()
        finally:
            self._closed.set()

    async def close(self, *, heard: bool = True) -> None:
        """End what runs, and let go of the tools. `heard`: whether anybody still listens."""
        if not heard:
            self._speech.end()
        self._closing.set()
        await self._closed.wait()

    def cancel(self) -> None:
        if self._now is not None:
            self._now.root.scope.cancel()

    def cancel_activity(self, id: str) -> bool:
        """False where there is none of this id any more."""
        return self._now is not None and self._now.root.cancel(id)

    async def prompt(self, blocks: Sequence[Block]) -> Stop:
        """Returns when it is answered and all of that is sent. Raises ModelError, NoSuchSession.

        An operation that is under way is cancelled, and has ended before this one begins. This one can be cancelled
        from the first moment on: nothing is awaited before it is known.
        """
        if self._closing.is_set():
            raise NoSuchSession
        before, over = self._now, anyio.Event()
        if before is not None:
            before.root.scope.cancel()
        try:
            return await self._operate(blocks, before, over)
        finally:
            with anyio.move_on_after(FLUSH_SECONDS, shield=True):
                await self._speech.flushed()
            over.set()
            if self._now is not None and self._now.over is over:
                self._now = None

    async def _operate(self, blocks: Sequence[Block], before: _Now | None, over: anyio.Event) -> Stop:
        with operation("Prompt", self._speech.activity) as root:
            self._now = _Now(root, over)
            if before is not None:
                with anyio.CancelScope(shield=True):  # it is cancelled, and bounded by its own last words
                    await before.over.wait()
            return await self.work.do(blocks, root)
        return "cancelled"

    async def _end_operation(self) -> None:
        self.cancel()
        if self._now is not None:
            await self._now.over.wait()
