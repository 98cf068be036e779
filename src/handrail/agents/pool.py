"""The pool of running agent programs: started on demand, shared by threads, ended when idle.

One program per agent and folder, or one per thread for an agent that cannot serve several. It is started in that
folder, because some agents run commands where they were started, not where their session is. The pool journals
each start and end. It does not know the protocol (`acp/agent.py`) or where the specs come from (`registry.py`).
"""

import logging
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import merge_environment, split_keys
from handrail.agents.acp.process import Process
from handrail.agents.registry import NO_COMMAND
from handrail.config import AgentSection
from handrail.errors import Unwritable
from handrail.store.journal import Journal
from handrail.store.threads.thread_records import AgentEnded, AgentStarted
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminals import Terminals

log = logging.getLogger(__name__)

GRACE = 5.0
"""Seconds that an agent gets to stop after a cancel."""
IDLE_SECONDS = 600.0
"""Seconds without use after which a program is ended: agents use much memory, and the next prompt starts it
again."""

START_SECONDS = 30.0
"""Seconds for a program to answer `initialize`; bounds the wait for a program that hangs."""

Key = tuple[str, str | None, str | None]
"""Agent, thread and folder. No thread: shared by the threads of the folder. No folder: the home folder."""


@dataclass
class _Entry:
    """An agent that is running or being started."""

    env: Mapping[str, str] = field(repr=False)
    """Environment variables beyond those of its spec."""
    started: anyio.Event = field(default_factory=anyio.Event)
    agent: Agent | None = None
    problem: AgentError | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when its process tree has ended."""

    @property
    def is_ending(self) -> bool:
        return self.problem is not None or (self.agent is not None and self.agent.is_over)

    async def wait(self) -> Agent:
        await self.started.wait()
        if self.agent is None:
            raise self.problem or AgentError("The agent was ended before it had started.")
        return self.agent


class Agents:
    """The agent programs. `get` fails unless `run` is running."""

    def __init__(
        self,
        terminals: Terminals,
        specs: Callable[[str], AgentSection | None],
        environment: Callable[[Sequence[str]], Mapping[str, str]],
        journal: Journal,
        grace: float = GRACE,
        *,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
    ) -> None:
        """`specs` finds an agent's section by name. `environment` returns a program's environment, with the
        named variables of the daemon's own added."""
        self._terminals, self._specs, self._environment = terminals, specs, environment
        self._journal, self._grace, self._idle_seconds = journal, grace, idle_seconds
        self._start_seconds = start_seconds
        self._entries: dict[Key, _Entry] = {}
        self._group: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Host the agents until cancelled; returns when all their process trees have ended."""
        await self._end_leftovers()
        async with anyio.create_task_group() as group:
            self._group = group
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._group = None

    @property
    def running(self) -> dict[str, Agent]:
        """One running agent per name."""
        entries = sorted(self._entries.items(), key=_last_used)
        return {name: entry.agent for (name, _, _), entry in entries if entry.agent is not None}

    def has_session(self, id: str) -> bool:
        """Whether a running agent has an open session with this id."""
        agents = [entry.agent for entry in self._entries.values() if entry.agent is not None]
        return any(id in agent.sessions.known for agent in agents)

    async def get(
        self,
        name: str,
        thread: str | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        folder: str | None = None,
    ) -> Agent:
        """Return the agent that runs in this folder; start it if needed, and restart it if `env` has changed.
        Raises AgentError.

        With `env`, or if the spec asks for one program per thread, the program serves this thread only.
        """
        spec = self._specs(name)
        if spec is None:
            raise AgentError(f"There is no agent called {name}.")
        key = (name, thread if spec.one_per_thread or env else None, folder)
        agent = await (await self._find_entry(key, env) or self._start(key, spec, env)).wait()
        agent.idle_since = anyio.current_time()
        return agent

    async def _find_entry(self, key: Key, env: Mapping[str, str]) -> _Entry | None:
        """Find the entry with exactly this environment; None once all others under this key have ended."""
        while (entry := self._entries.get(key)) is not None:
            if entry.is_ending:
                await entry.ended.wait()
            elif entry.env == env:
                return entry
            else:
                await entry.started.wait()
                if entry.agent is not None:
                    await entry.agent.end(f"{entry.agent.name} restarts with other keys.")
        return None

    async def end(self, name: str, why: str, thread: str | None = None) -> None:
        """End the programs of an agent: those of one thread, or all."""
        for (agent_name, of, _), entry in list(self._entries.items()):
            if agent_name == name and thread in (None, of) and entry.agent is not None:
                await entry.agent.end(why)

    async def close(self) -> None:
        """End all agents."""
        async with anyio.create_task_group() as group:
            for name, agent in self.running.items():
                group.start_soon(self.end, name, f"{agent.name} was ended with Handrail.")

    def _start(self, key: Key, spec: AgentSection, env: Mapping[str, str]) -> _Entry:
        if self._group is None:
            raise AgentError("No agent can be started: Handrail is just starting, or ending.")
        entry = self._entries[key] = _Entry(env)
        # In the pool's own group: the first caller may be cancelled while others wait.
        self._group.start_soon(self._host, key, entry, spec)
        return entry

    async def _host(self, key: Key, entry: _Entry, spec: AgentSection) -> None:
        """Run one agent from its start to the end of its process tree."""
        try:
            env, keys = split_keys(
                spec, merge_environment({**self._environment(spec.env_pass), **spec.env}, entry.env)
            )
            home = env.get("HOME") or "/"
            command = _absolute_command(spec, home, env)
            process = await Process.start(self._terminals, spec.name, command, key[2] or home, env)
            try:
                await self._run_agent(entry, spec, process, keys)
            finally:
                process.close()
        except AgentError as problem:
            entry.problem = problem
        finally:
            del self._entries[key]
            entry.started.set()
            entry.ended.set()

    async def _run_agent(
        self, entry: _Entry, spec: AgentSection, process: Process, keys: Mapping[str, str]
    ) -> None:
        async with anyio.create_task_group() as group:
            agent, why = Agent(spec, process, group, self._grace), f"{spec.name} was ended with Handrail."
            group.start_soon(process.run)
            try:
                await self._serve(entry, agent, process, keys)
            except AgentError as problem:
                entry.problem, why = problem, problem.sentence
                entry.started.set()
            finally:
                await agent.leave(why)
                self._note_end(spec, process)
                group.cancel_scope.cancel()

    async def _serve(self, entry: _Entry, agent: Agent, process: Process, keys: Mapping[str, str]) -> None:
        await agent.greet(self._start_seconds, keys)
        self._note_start(agent, process)
        entry.agent = agent
        entry.started.set()
        await self._wait_until_over(agent, process)

    async def _wait_until_over(self, agent: Agent, process: Process) -> None:
        while process.why is None:
            remaining = self._idle_seconds - (anyio.current_time() - agent.idle_since)
            if remaining <= 0 and not agent.busy:
                process.give_up(f"Nobody had used {agent.name} for {self._idle_seconds / 60:g} minutes.")
            with anyio.move_on_after(remaining if remaining > 0 else self._idle_seconds):
                await process.over.wait()

    def _note_start(self, agent: Agent, process: Process) -> None:
        terminal, version = process.terminal, agent.about.version
        try:
            self._journal.append(
                AgentStarted(agent=agent.name, terminal=terminal.id, pid=terminal.pid, version=version)
            )
        except Unwritable as problem:
            raise AgentError(str(problem)) from None

    def _note_end(self, spec: AgentSection, process: Process) -> None:
        why, stderr = process.why or "", process.stderr_lines
        with suppress(Unwritable):
            self._journal.append(
                AgentEnded(agent=spec.name, terminal=process.terminal.id, why=why, said=stderr)
            )
        self._terminals.release(process.terminal.id)

    async def _end_leftovers(self) -> None:
        """End programs that a crashed daemon left behind: their pipes are lost, so they cannot be used."""
        for terminal in self._terminals.known:
            if terminal.pipes and terminal.swept is None:
                try:
                    await terminal.stop(0.0)
                except KeeperError as problem:
                    log.warning("a program of an agent, left behind, could not be ended: %s", problem)


def _last_used(item: tuple[Key, _Entry]) -> float:
    return -math.inf if item[1].agent is None else item[1].agent.idle_since


def _absolute_command(spec: AgentSection, home: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command with its program searched from the home folder: a file of the project must not take its place."""
    if not spec.command:
        raise AgentError(f"{spec.name} could not be started. {NO_COMMAND}")
    program, *arguments = spec.command
    if "/" in program:
        return str(Path(home, program)), *arguments
    folders = [folder for folder in env.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")]
    found = shutil.which(program, path=os.pathsep.join(folders) or os.defpath)
    if found is None:
        raise AgentError(
            f"{spec.name} could not be started. There is no program {program} on the PATH it was given."
        )
    return found, *arguments
