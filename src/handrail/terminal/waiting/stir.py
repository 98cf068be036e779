"""Waking when a terminal stirs: new output, an exit, a question, another program in its foreground.

Owns that no stirring between two looks is missed. It does not know what anybody waits for (wait.py).
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskStatus

    from handrail.terminal.terminal import Terminal


GATHER_SECONDS = 0.02
"""Between two rings for output: a storm is looked at fifty times a second, not at each of its pieces."""


class Stir:
    """A bell that stays rung until it is heard."""

    def __init__(self) -> None:
        self._bell = anyio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def next(self, seconds: float | None = None) -> bool:
        """Return when something has stirred since this last returned, or after so long; whether it has."""
        with anyio.move_on_after(seconds):
            await self._bell.wait()
        rung, self._bell = self._bell.is_set(), anyio.Event()
        return rung


@asynccontextmanager
async def stirring(terminal: Terminal) -> AsyncGenerator[Stir]:
    """A bell for one terminal."""
    stir, problem = Stir(), None
    async with anyio.create_task_group() as group:
        await group.start(_hear_changes, terminal, stir)
        await group.start(_hear_output, terminal, stir)
        try:
            yield stir
        except Exception as error:  # as it is, and not in a group
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        raise problem


async def _hear_changes(
    terminal: Terminal, stir: Stir, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    while True:
        await terminal.changed()
        stir.ring()


async def _hear_output(
    terminal: Terminal, stir: Stir, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    end = terminal.tail.end
    task_status.started()
    while await _grows(terminal, end):
        end = (
            terminal.tail.end
        )  # before it rings: whoever hears it may look at once, and never again for this much
        stir.ring()
        await anyio.sleep(GATHER_SECONDS)
    stir.ring()


async def _grows(terminal: Terminal, end: int) -> bool:
    """Return when there is output after `end`; False when none can come."""

    async def heard(_data: bytes, _offset: int) -> None:
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    with anyio.CancelScope() as scope:
        await terminal.tail.follow(end, heard)
    return scope.cancelled_caught
