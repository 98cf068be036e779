"""AgentHost: builds the agent side of the daemon (threads, registry, pool, prompts), starts and ends it.

Part of the composition root: it holds no other behaviour.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import McpEntry
from handrail.agents.conversation.agent_sessions import McpEntryBuilder
from handrail.agents.conversation.thread_prompts import Prompts
from handrail.agents.pool import Agents
from handrail.agents.registry import Registry, build_own_section, has_provider_key
from handrail.agents.requests.handlers import RequestHandlers
from handrail.config import AgentSection
from handrail.gate.gate import Gate
from handrail.gate.rules.accepted_policy import AcceptedPolicy
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places, own_python
from handrail.server.access import Access
from handrail.store.blobs import Blobs, ImageRetention
from handrail.store.records import Records
from handrail.store.threads.threads import Threads
from handrail.terminal.terminals import Terminals

UNWIND_SECONDS = 1.0
"""Seconds for running prompts to unwind when the daemon stops: a person waits for it."""
LEAVE_SECONDS = 3.0
"""Seconds for agent programs to end. The rest end when their pipes close, or are ended by the next daemon."""
NOT_ACCEPTED = (
    "This agent is defined in config.toml, which changed without Handrail and which no person has accepted yet. "
    "Look at the change with `handrail rules accept`."
)
Environment = Callable[[Sequence[str]], Mapping[str, str]]
"""Builds a program's environment, with the named variables of the daemon's own added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHost:
    """The parts that host agents."""

    threads: Threads
    images: Blobs
    pictures: ImageRetention
    registry: Registry
    agents: Agents
    prompts: Prompts
    _prompts_scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _prompts_ended: anyio.Event = field(default_factory=anyio.Event)

    async def start(self, group: TaskGroup) -> None:
        """Accept prompts from now on."""
        await group.start(self.agents.run)
        await group.start(self._run_prompts)
        group.start_soon(self.pictures.run)

    async def leave(self) -> None:
        """End the agents; running prompts are marked as interrupted."""
        self._prompts_scope.cancel()
        with anyio.move_on_after(UNWIND_SECONDS):
            await self._prompts_ended.wait()
        with anyio.move_on_after(LEAVE_SECONDS):
            await self.agents.close()
            await self._prompts_ended.wait()

    async def _run_prompts(self, *, task_status: TaskStatus[None]) -> None:
        with self._prompts_scope:
            await self.prompts.run(task_status=task_status)
        self._prompts_ended.set()


def build_agent_host(
    named: Sequence[AgentSection],
    images: Blobs,
    environment: Environment,
    home: Mapping[str, str],
    gate: Gate,
    records: Records,
    terminals: Terminals,
    door: McpEntryBuilder,
    policy: AcceptedPolicy,
    config: Path,
) -> AgentHost:
    """`home` are the variables by which a program finds this Handrail's files. `config` is the file of settings,
    which our own agent reads at its start."""
    threads = Threads(gate.journal, records)
    own = build_own_section(named, home)
    registry = Registry(
        named, environment(()), own=own, keyed=has_provider_key({**environment(own.env_pass), **own.env})
    )

    def spec(name: str) -> AgentSection | None:
        if policy.holds_config and any(section.name == name for section in named):
            raise AgentError(NOT_ACCEPTED)
        return registry.spec(name)

    agents = Agents(terminals, spec, environment, gate.journal, settings=lambda: _file_version(config))
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
        pictures=ImageRetention(images, records),
        registry=registry,
        agents=agents,
        prompts=prompts,
    )


def build_mcp_entry(access: Access, places: Places, url: str) -> McpEntryBuilder:
    """Build the entry of our MCP server for a thread's agent, with a credential for that thread only."""

    def door(thread: str, workspace: str | None, agent: str) -> McpEntry:
        bearer = access.lend(thread, workspace, agent)
        # -P: a module in the agent's working directory must not shadow ours.
        command = (*own_python(), "-m", "handrail", "mcp")
        env = {**places.environment, "HANDRAIL_CREDENTIAL": bearer}
        return McpEntry(url=f"{url}/mcp", bearer=bearer, command=command, env=env)

    return door


def _file_version(path: Path) -> tuple[int, int] | None:
    """Changes with the file; None if it is missing."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
