"""A terminal: a process under the keeper, with its output, its exit and the end of its tree.

Owns what the daemon knows of one terminal, and its verbs. Does not know why it was opened, nor who may type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from handrail.keeper.protocol import Done, Exit, Input, Report, Resize, Signal, Stop, Stopped
from handrail.terminal.keeper import Keeper, KeeperError

if TYPE_CHECKING:
    from handrail.terminal.tail import Tail


@dataclass(slots=True, eq=False)
class Terminal:
    """One watched process. `exit` is set once its leader has left, `swept` once its whole tree is gone."""

    id: str
    argv: tuple[str, ...]
    cwd: str
    size: tuple[int, int]
    created_at: float
    tail: Tail
    keeper: Keeper = field(repr=False)
    pid: int = 0
    exit: Exit | None = None
    swept: Report | None = None
    unrecorded: str | None = None
    _left: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _gone: anyio.Event = field(default_factory=anyio.Event, repr=False)

    async def write(self, data: bytes) -> None:
        """Type. Raises KeeperError when it has ended, or does not read and too much waits already."""
        await self.keeper.request(Input(self.keeper.number(), self.id, data), Done)

    async def resize(self, cols: int, rows: int) -> None:
        await self.keeper.request(Resize(self.keeper.number(), self.id, cols, rows), Done)
        self.size = (cols, rows)

    async def signal(self, number: int) -> None:
        """To the leader alone."""
        await self.keeper.request(Signal(self.keeper.number(), self.id, number), Done)

    async def stop(self, grace: float = 2.0) -> Report:
        """End the whole tree; returns when nothing of it is left. Goes on even if the caller is cancelled."""
        if self.swept is not None:
            return self.swept
        try:
            reply = await self.keeper.request(Stop(self.keeper.number(), self.id, grace), Stopped)
        except KeeperError:
            if self.swept is None:  # the keeper was not lost: it refused
                raise
            return self.swept
        return reply.report

    async def wait(self) -> Exit:
        """How the leader ended, as soon as it has."""
        await self._left.wait()
        assert self.exit is not None
        return self.exit

    async def wait_swept(self) -> Report:
        """How the rest of its tree ended, as soon as nothing of it is left."""
        await self._gone.wait()
        assert self.swept is not None
        return self.swept

    def sweep(self, report: Report) -> None:
        self.swept = report
        self._gone.set()

    def leave(self, exit: Exit) -> None:
        self.exit = exit
        self._left.set()
