"""Minds: agents and what is said with them, built in one place, started in order and ended in order.

The daemon's own, a part of its composition root. It knows what each part needs, and nothing of what they do.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.agents.acp.capabilities import McpDoor
from handrail.agents.conversation.send_prompt import Door
from handrail.agents.conversation.thread_prompts import Prompts
from handrail.agents.pool import Agents
from handrail.agents.registry import Registry, has_key, own_agent
from handrail.agents.requests.handlers import RequestHandlers
from handrail.config import AgentSection
from handrail.gate.gate import Gate
from handrail.paths import Places
from handrail.server.access import Access
from handrail.store.blobs import Blobs, PictureRetention
from handrail.store.records import Records
from handrail.store.threads.threads import Threads
from handrail.terminal.terminals import Terminals

UNWIND_SECONDS = 1.0
"""For agents that are at work to stop by themselves, when the daemon ends: a person waits for it."""
LEAVE_SECONDS = 3.0
"""For their programs to end. What is left then ends with its pipes, or by the next daemon's hand."""
Environment = Callable[[Sequence[str]], Mapping[str, str]]
"""What a program finds around it, with the variables that are passed on by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHost:
    """Who thinks, and what was said."""

    threads: Threads
    images: Blobs
    pictures: PictureRetention
    registry: Registry
    agents: Agents
    prompts: Prompts
    _talking: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _silent: anyio.Event = field(default_factory=anyio.Event)

    async def start(self, group: TaskGroup) -> None:
        """From here on there can be talk."""
        await group.start(self.agents.run)
        await group.start(self._talk)
        group.start_soon(self.pictures.run)

    async def leave(self) -> None:
        """End what thinks; what was being said is marked as interrupted."""
        self._talking.cancel()
        with anyio.move_on_after(UNWIND_SECONDS):
            await self._silent.wait()
        with anyio.move_on_after(LEAVE_SECONDS):
            await self.agents.close()
            await self._silent.wait()

    async def _talk(self, *, task_status: TaskStatus[None]) -> None:
        with self._talking:
            await self.prompts.run(task_status=task_status)
        self._silent.set()


def build_agent_host(
    named: Sequence[AgentSection],
    images: Blobs,
    environment: Environment,
    home: Mapping[str, str],
    gate: Gate,
    records: Records,
    terminals: Terminals,
    door: Door,
) -> AgentHost:
    """`home` is what leads a program to this Handrail's own files."""
    threads = Threads(gate.journal, records)
    own = own_agent(named, home)
    registry = Registry(
        named, environment(()), own=own, keyed=has_key({**environment(own.env_pass), **own.env})
    )
    agents = Agents(terminals, registry.spec, environment, gate.journal)
    prompts = Prompts(
        gate,
        threads,
        agents,
        RequestHandlers(gate, terminals),
        records,
        specs=registry.spec,
        door=door,
        images=images,
    )
    return AgentHost(
        threads=threads,
        images=images,
        pictures=PictureRetention(images, records),
        registry=registry,
        agents=agents,
        prompts=prompts,
    )


def build_mcp_door(access: Access, places: Places, url: str) -> Door:
    """Our own MCP server, as an agent that works for a thread reaches it: with a credential for that thread alone."""

    def door(thread: str, workspace: str | None, agent: str) -> McpDoor:
        bearer = access.lend(thread, workspace, agent)
        # -P: what an agent works on must not be taken for us.
        command = (sys.executable, "-P", "-m", "handrail", "mcp")
        env = {**places.environment, "HANDRAIL_CREDENTIAL": bearer}
        return McpDoor(url=f"{url}/mcp", bearer=bearer, command=command, env=env)

    return door
