"""The agents that run: started when they are wanted, shared by threads, ended when nobody has used them for a while.

Owns one program per agent, or per thread where one cannot serve several, and the journal's word of each. Does not
know the protocol (agent.py), nor which agents there are (the specs it is given).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import apart, joined
from handrail.agents.acp.process import Process
from handrail.config import AgentSection
from handrail.errors import Unwritable
from handrail.store.journal import Journal
from handrail.store.threads.thread_records import AgentEnded, AgentStarted
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminals import Terminals

log = logging.getLogger(__name__)

GRACE = 5.0
"""Seconds an agent gets to stop when its work is cancelled."""
IDLE_SECONDS = 600.0
"""A program that nobody has used for so long is ended: agents are heavy, and the next prompt starts it again."""

START_SECONDS = 30.0
"""What a program gets to answer `initialize`."""

Key = tuple[str, str | None]


@dataclass
class _Place:
    """Where an agent runs, or is about to."""

    env: Mapping[str, str] = field(repr=False)
    """What it was given beyond its spec."""
    known: anyio.Event = field(default_factory=anyio.Event)
    agent: Agent | None = None
    problem: AgentError | None = None
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when its tree is gone."""

    @property
    def is_ending(self) -> bool:
        return self.problem is not None or (self.agent is not None and self.agent.is_over)

    async def wait(self) -> Agent:
        await self.known.wait()
        if self.agent is None:
            raise self.problem or AgentError("The agent was ended before it had started.")
        return self.agent


class Agents:
    """Every agent's program. `run` must run before any can be had."""

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
        """`specs` knows an agent by its name; `environment` gives what a program finds around it, with the variables
        that are passed on by name."""
        self._terminals, self._specs, self._environment = terminals, specs, environment
        self._journal, self._grace, self._idle_seconds = journal, grace, idle_seconds
        self._start_seconds = start_seconds
        self._places: dict[Key, _Place] = {}
        self._group: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the agents that are wanted; on leaving, none of their trees is left."""
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
        """One of each that runs, by name."""
        return {name: place.agent for (name, _), place in self._places.items() if place.agent is not None}

    async def get(
        self, name: str, thread: str | None = None, env: Mapping[str, str] = MappingProxyType({})
    ) -> Agent:
        """The agent, running; started if it does not, and anew where it was given another `env`. Raises AgentError.

        What is given is for this thread, whose program then nobody shares.
        """
        spec = self._specs(name)
        if spec is None:
            raise AgentError(f"There is no agent called {name}.")
        key = (name, thread if spec.one_per_thread or env else None)
        agent = await (await self._place(key, env) or self._start(key, spec, env)).wait()
        agent.idle_since = anyio.current_time()
        return agent

    async def _place(self, key: Key, env: Mapping[str, str]) -> _Place | None:
        """Where it runs with just this; None where it does not, once all that it ran as is gone."""
        while (place := self._places.get(key)) is not None:
            if place.is_ending:
                await place.left.wait()
            elif place.env == env:
                return place
            else:
                await place.known.wait()
                if place.agent is not None:
                    await place.agent.end(f"{place.agent.name} is started anew with other keys.")
        return None

    async def end(self, name: str, why: str, thread: str | None = None) -> None:
        """End an agent's programs, one thread's or all."""
        for (known, of), place in list(self._places.items()):
            if known == name and thread in (None, of) and place.agent is not None:
                await place.agent.end(why)

    async def close(self) -> None:
        """End them all."""
        async with anyio.create_task_group() as group:
            for name, agent in self.running.items():
                group.start_soon(self.end, name, f"{agent.name} was ended with Handrail.")

    def _start(self, key: Key, spec: AgentSection, env: Mapping[str, str]) -> _Place:
        if self._group is None:
            raise AgentError("No agent can be started: Handrail is just starting, or ending.")
        place = self._places[key] = _Place(env)
        # In our own group: whoever wanted it first may be cancelled while others wait.
        self._group.start_soon(self._keep, key, place, spec)
        return place

    async def _keep(self, key: Key, place: _Place, spec: AgentSection) -> None:
        """From its start to the end of its tree."""
        try:
            env, keys = apart(spec, joined({**self._environment(spec.env_pass), **spec.env}, place.env))
            home = env.get("HOME") or "/"
            process = await Process.start(self._terminals, spec.name, spec.command, home, env)
            try:
                await self._live(place, spec, process, keys)
            finally:
                process.close()
        except AgentError as problem:
            place.problem = problem
        finally:
            del self._places[key]
            place.known.set()
            place.left.set()

    async def _live(
        self, place: _Place, spec: AgentSection, process: Process, keys: Mapping[str, str]
    ) -> None:
        async with anyio.create_task_group() as group:
            agent, why = Agent(spec, process, group, self._grace), f"{spec.name} was ended with Handrail."
            group.start_soon(process.run)
            try:
                await self._serve(place, agent, process, keys)
            except AgentError as problem:
                place.problem, why = problem, problem.sentence
                place.known.set()
            finally:
                await agent.leave(why)
                self._note_end(spec, process)
                group.cancel_scope.cancel()

    async def _serve(self, place: _Place, agent: Agent, process: Process, keys: Mapping[str, str]) -> None:
        await agent.greet(self._start_seconds, keys)
        self._note_start(agent, process)
        place.agent = agent
        place.known.set()
        await self._until_over(agent, process)

    async def _until_over(self, agent: Agent, process: Process) -> None:
        while process.why is None:
            left = self._idle_seconds - (anyio.current_time() - agent.idle_since)
            if left <= 0 and not agent.busy:
                process.give_up(f"Nobody had used {agent.name} for {self._idle_seconds / 60:g} minutes.")
            with anyio.move_on_after(left if left > 0 else self._idle_seconds):
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
        why, said = process.why or "", process.said
        with suppress(Unwritable):
            self._journal.append(
                AgentEnded(agent=spec.name, terminal=process.terminal.id, why=why, said=said)
            )
        self._terminals.release(process.terminal.id)

    async def _end_leftovers(self) -> None:
        """Programs with pipes that a daemon left behind when it died: nobody can speak to them any more."""
        for terminal in self._terminals.known:
            if terminal.pipes and terminal.swept is None:
                try:
                    await terminal.stop(0.0)
                except KeeperError as problem:
                    log.warning("a program of an agent, left behind, could not be ended: %s", problem)
