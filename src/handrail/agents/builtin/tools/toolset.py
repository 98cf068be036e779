"""All that the model of one session can do.

Owns which tools there are, by the names the model knows them by. Importing it loads neither MCP nor a model's library:
both are loaded aside, once a session is opened. It does not know how a server is spoken to (link.py, server.py), nor
what any tool does.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.agents.builtin.tools.wanted import wanted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from anyio.abc import TaskGroup

    from handrail.agents.builtin.tools.servers import Servers
    from handrail.agents.builtin.tools.tool import Tool
    from handrail.agents.builtin.tools.wanted import Given, Wanted


class Toolset:
    """The tools of one session; made by `opened`. Empty until `ready` has returned."""

    def __init__(self, notes: Sequence[str]) -> None:
        self._notes = list(notes)
        self._servers: Servers | None = None
        self._loaded = anyio.Event()

    async def ready(self) -> None:
        """Every server is connected, or will not be, or was waited for long enough. Whoever is cancelled here harms nothing."""
        await self._loaded.wait()
        if self._servers is not None:
            await self._servers.settled()

    @property
    def tools(self) -> Mapping[str, Tool]:
        """By name, as they are now: a server that comes back may have others."""
        return {} if self._servers is None else self._servers.tools

    @property
    def notes(self) -> Sequence[str]:
        """A sentence for each server that there was to be and is not."""
        return self._notes if self._servers is None else [*self._notes, *self._servers.problems]

    @property
    def instructions(self) -> str:
        """What the servers say about using them, for the model; empty where none does."""
        return "" if self._servers is None else self._servers.instructions

    async def begin(self, servers: Sequence[Wanted], cwd: str, group: TaskGroup) -> None:
        """Load what is slow to load, and begin to connect; `opened` alone calls this."""
        made = await anyio.to_thread.run_sync(_servers, abandon_on_cancel=True)
        self._servers = made(servers, cwd, group)
        self._loaded.set()


@asynccontextmanager
async def opened(given: Sequence[Given], cwd: str) -> AsyncGenerator[Toolset]:
    """The tools of a session, for the length of the `with`; begins to connect and does not wait for it.

    To be entered and left in one task that lives as long as the session. Calls are made from any other.
    """
    servers, notes = wanted(given, cwd)
    toolset = Toolset(notes)
    async with anyio.create_task_group() as group:
        group.start_soon(toolset.begin, servers, cwd, group)
        try:
            yield toolset
        finally:
            group.cancel_scope.cancel()


def _servers() -> type[Servers]:
    """Slow the first time, since it loads MCP and the model's library: to be called off the loop."""
    from handrail.agents.builtin.tools.servers import Servers  # noqa: PLC0415

    return Servers
