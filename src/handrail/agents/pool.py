"""The pool of running agent programs: started on demand, shared by threads, ended when idle.

One program per agent and folder, or one per thread for an agent that cannot serve several. It is started in that
folder, because some agents run commands where they were started, not where their session is. Our own agent does not,
and takes seconds to import its libraries: once it is used, a spare program, which has no keys yet, waits for the next
thread. The pool journals each start and end. It does not know the protocol (`acp/agent.py`) or where the specs come from
(`registry.py`).
"""

import logging
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import merge_environment, split_keys
from handrail.agents.registry import NO_COMMAND, is_own
from handrail.config import AgentSection
from handrail.errors import Unwritable
from handrail.lazy_dataclass import dataclass
from handrail.store.journal import Journal
from handrail.store.threads.thread_records import AgentEnded, AgentStarted
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.pipe_process import PipeProcess
from handrail.terminal.terminals import Terminals

log = logging.getLogger(__name__)

GRACE = 5.0
"""Seconds that an agent gets to stop after a cancel."""
IDLE_SECONDS = 600.0
"""Seconds without use after which a program is ended: agents use much memory, and the next prompt starts it
again."""

SPARE_SECONDS = 5.0
"""Seconds between the use of a program and the start of a spare one: the first prompt has the processor to itself."""
START_SECONDS = 30.0
"""Seconds for a program to answer `initialize`; bounds the wait for a program that hangs."""

Key = tuple[str, str | None, str | None]
"""Agent, thread and folder. No thread: shared by the threads of the folder. No folder: the home folder."""
SPARE = ""
"""In place of the thread: the program waits for one."""


@dataclass()
class _Entry:
    """An agent that is running or being started."""

    key: Key
    """Changes when a thread takes a spare program."""
    env: Mapping[str, str] = field(repr=False)
    """Environment variables beyond those of its spec. Changes likewise."""
    settings: object = None
    """The version of the settings that it has read at its start."""
    started: anyio.Event = field(default_factory=anyio.Event)
    process: PipeProcess | None = None
    agent: Agent | None = None
    problem: AgentError | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when its process tree has ended."""
    spare: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """The wait of a spare program. Cancelled when a thread takes it, or when it is not needed any more."""

    @property
    def is_ending(self) -> bool:
        return self.problem is not None or (self.agent is not None and self.agent.is_over)

    async def wait(self) -> Agent:
        await self.started.wait()
        if self.agent is None:
            raise self.problem or AgentError("The agent was ended before it had started.")
        return self.agent

    def take(self, key: Key, env: Mapping[str, str]) -> None:
        """Let a spare program serve this thread."""
        self.key, self.env = key, env
        self.spare.cancel()

    async def end(self, why: str) -> None:
        """End the program, unless a thread waits for its start; returns when its process tree has ended."""
        if self.agent is not None:
            await self.agent.end(why)
        elif self.key[1] == SPARE:
            self.problem = AgentError(why)
            self.spare.cancel()
            await self.ended.wait()


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
        spare_seconds: float = SPARE_SECONDS,
        keeps_spare: Callable[[AgentSection], bool] = is_own,
        settings: Callable[[], object] = lambda: None,
    ) -> None:
        """`specs` finds an agent's section by name. `environment` returns a program's environment, with the
        named variables of the daemon's own added. `keeps_spare` chooses the agents of which a spare program is kept,
        among those with one program per thread. `settings` is the version of the files that such a program reads at
        its start."""
        self._terminals, self._specs, self._environment = terminals, specs, environment
        self._journal, self._grace, self._idle_seconds = journal, grace, idle_seconds
        self._start_seconds = start_seconds
        self._spare_seconds, self._keeps_spare = spare_seconds, keeps_spare
        self._settings = settings
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
        """One running agent per name; no spare ones."""
        entries = sorted(self._entries.items(), key=_last_used)
        return {
            name: entry.agent
            for (name, thread, _), entry in entries
            if entry.agent is not None and thread != SPARE
        }

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
        entry = (
            await self._find_entry(key, env)
            or self._take_spare(key, spec, env)
            or self._start(key, spec, env)
        )
        agent = await entry.wait()
        agent.idle_since = anyio.current_time()
        if self._has_spare(spec) and self._group is not None:
            self._group.start_soon(self._keep_spare, name)
        return agent

    def prepare(self, name: str) -> None:
        """Start a spare program for a thread that will probably be prompted soon, if the agent has such."""
        with suppress(AgentError):  # its prompt reports it
            spec, key = self._specs(name), (name, SPARE, None)
            if spec is not None and self._has_spare(spec) and key not in self._entries:
                self._start(key, spec, {})

    def _has_spare(self, spec: AgentSection) -> bool:
        return spec.one_per_thread and self._keeps_spare(spec)

    def _take_spare(self, key: Key, spec: AgentSection, env: Mapping[str, str]) -> _Entry | None:
        """Give the spare program to a thread, unless `env` has more than keys, which a program gets at its start."""
        entry = self._entries.get((key[0], SPARE, None))
        if entry is None or not self._is_current(entry):
            return None
        if self._split_environment(spec, env)[0] != self._split_environment(spec, {})[0]:
            return None
        self._entries[key] = self._entries.pop(entry.key)
        entry.take(key, env)
        return entry

    def _is_current(self, entry: _Entry) -> bool:
        has_ended = entry.process is not None and entry.process.terminal.exit is not None
        return not (entry.is_ending or has_ended) and entry.settings == self._settings()

    async def _keep_spare(self, name: str) -> None:
        """Start a spare program after a while, or let the present one wait on."""
        await anyio.sleep(self._spare_seconds)
        key = (name, SPARE, None)
        entry = self._entries.get(key)
        if entry is not None and not self._is_current(entry):
            await entry.end(f"The settings of {name} have changed.")
        elif entry is not None:
            entry.spare.deadline = anyio.current_time() + self._idle_seconds
        if name in self.running:
            self.prepare(name)

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
            if agent_name == name and thread in (None, of):
                await entry.end(why)

    async def close(self) -> None:
        """End all agents."""
        async with anyio.create_task_group() as group:
            for name, agent in {key[0]: entry.agent for key, entry in self._entries.items()}.items():
                why = f"{name if agent is None else agent.name} was ended with Handrail."
                group.start_soon(self.end, name, why)

    def _start(self, key: Key, spec: AgentSection, env: Mapping[str, str]) -> _Entry:
        if self._group is None:
            raise AgentError("No agent can be started: Handrail is just starting, or ending.")
        entry = self._entries[key] = _Entry(key, env, self._settings())
        # In the pool's own group: the first caller may be cancelled while others wait.
        self._group.start_soon(self._host, entry, spec)
        return entry

    async def _host(self, entry: _Entry, spec: AgentSection) -> None:
        """Run one agent from its start to the end of its process tree."""
        try:
            env, _ = self._split_environment(spec, entry.env)
            home = env.get("HOME") or "/"
            command = _absolute_command(spec, home, env)
            cwd = entry.key[2] or home
            entry.process = await PipeProcess.start(self._terminals, spec.name, command, cwd, env)
            try:
                await self._run_agent(entry, spec, entry.process)
            finally:
                entry.process.close()
        except KeeperError as problem:
            entry.problem = AgentError(f"{spec.name} could not be started. {problem}")
        except AgentError as problem:
            entry.problem = problem
        finally:
            del self._entries[entry.key]
            entry.started.set()
            entry.ended.set()

    def _split_environment(
        self, spec: AgentSection, more: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The environment of a program, and the keys that it gets with `initialize`."""
        return split_keys(spec, merge_environment({**self._environment(spec.env_pass), **spec.env}, more))

    async def _run_agent(self, entry: _Entry, spec: AgentSection, process: PipeProcess) -> None:
        async with anyio.create_task_group() as group:
            agent, why = Agent(spec, process, group, self._grace), f"{spec.name} was ended with Handrail."
            group.start_soon(process.run)
            try:
                if entry.key[1] == SPARE:
                    await self._wait_for_thread(entry, process)
                await self._serve(entry, agent, process, self._split_environment(spec, entry.env)[1])
            except AgentError as problem:
                entry.problem, why = problem, problem.sentence
                entry.started.set()
            finally:
                await agent.leave(why)
                self._note_end(spec, process)
                group.cancel_scope.cancel()

    async def _wait_for_thread(self, entry: _Entry, process: PipeProcess) -> None:
        """Hold a spare program until a thread takes it. Raises AgentError if no thread does, or if it ends before."""
        entry.spare.deadline = anyio.current_time() + self._idle_seconds
        with entry.spare:
            await process.terminal.wait()
        if entry.key[1] == SPARE:
            raise entry.problem or AgentError("No thread has used this program.")

    async def _serve(
        self, entry: _Entry, agent: Agent, process: PipeProcess, keys: Mapping[str, str]
    ) -> None:
        await agent.greet(self._start_seconds, keys)
        self._note_start(agent, process)
        entry.agent = agent
        entry.started.set()
        await self._wait_until_over(agent, process)

    async def _wait_until_over(self, agent: Agent, process: PipeProcess) -> None:
        while process.why is None:
            remaining = self._idle_seconds - (anyio.current_time() - agent.idle_since)
            if remaining <= 0 and not agent.busy:
                process.give_up(f"Nobody had used {agent.name} for {self._idle_seconds / 60:g} minutes.")
            with anyio.move_on_after(remaining if remaining > 0 else self._idle_seconds):
                await process.over.wait()

    def _note_start(self, agent: Agent, process: PipeProcess) -> None:
        terminal, version = process.terminal, agent.about.version
        try:
            self._journal.append(
                AgentStarted(agent=agent.name, terminal=terminal.id, pid=terminal.pid, version=version)
            )
        except Unwritable as problem:
            raise AgentError(str(problem)) from None

    def _note_end(self, spec: AgentSection, process: PipeProcess) -> None:
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
