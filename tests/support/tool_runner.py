"""The real tools behind the real gate: file tools on a workspace, and terminal tools on a real keeper."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.actors import PAGE
from tests.support.keeper_terminals import shell_home

from handrail.daemon.terminal_events import TerminalEvents
from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Refusal, Tool
from handrail.paths import Places
from handrail.store.events import ApprovalOpened, CallSettled, Entry
from handrail.store.journal import open_journal
from handrail.store.records import Records, open_records
from handrail.store.values import Caller, Effect, Json, Result
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.open_shell import TerminalSettings
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals
from handrail.terminal.wait.input_detection import InputDetector
from handrail.tools.calls import WaitForCall
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.terminals.close_terminal import CloseTerminal
from handrail.tools.terminals.create_tracked_terminal import CreateTrackedTerminal
from handrail.tools.terminals.get_terminal_buffer import GetTerminalBuffer
from handrail.tools.terminals.list_tracked_terminals import ListTrackedTerminals
from handrail.tools.terminals.search_terminal_buffer import SearchTerminalBuffer
from handrail.tools.terminals.send_to_terminal import SendToTerminal
from handrail.tools.terminals.wait_for_terminal import WaitForTerminal
from handrail.tools.tool_context import ToolContext

BOUND = 20.0
"""Seconds no wait of these tests may exceed."""


@dataclass
class ToolRunner:
    """The gate with the file tools, a caller, and a person who allows."""

    gate: Gate
    root: Path
    caller: Caller

    async def outcome(self, tool: str, **input: Any) -> Outcome:
        """The outcome of a call that needs no approval."""
        with anyio.fail_after(BOUND):
            reply = await self.gate.submit(self._request(tool, input, BOUND))
        assert reply.outcome is not None
        return reply.outcome

    async def result(self, tool: str, **input: Any) -> Result:
        return result_of(await self.outcome(tool, **input))

    async def refusal(self, tool: str, **input: Any) -> str:
        outcome = await self.outcome(tool, **input)
        assert outcome.ending == "failed", outcome
        return outcome.message

    async def waiting(self, tool: str, **input: Any) -> Call:
        """A call that waits for the person."""
        reply = await self.gate.submit(self._request(tool, input, 0))
        await self._fact(reply.call, ApprovalOpened, CallSettled)
        assert reply.call.status == "waiting", reply.call.outcome
        return reply.call

    async def allow(self, call: Call) -> Outcome:
        assert call.approval is not None
        await person_actions.answer(
            self.gate, call.approval, Answer(kind="allow", by=PAGE), call.approval.digest
        )
        return await self.ended(call)

    async def ended(self, call: Call) -> Outcome:
        await self._fact(call, CallSettled)
        assert call.outcome is not None
        return call.outcome

    async def allowed(self, tool: str, **input: Any) -> Outcome:
        """How a call ends that waits for the person, who allows it."""
        return await self.allow(await self.waiting(tool, **input))

    def without_workspace(self) -> "ToolRunner":
        return replace(self, caller=replace(self.caller, workspace=None))

    def call(self, tool: str) -> Call:
        """A call to run a plan in, past the gate."""
        return Call.open(self.gate.journal, tool, tool, {}, self.caller)

    def _request(self, tool: str, input: Json, patience: float) -> Request:
        return Request(tool=tool, input=input, caller=self.caller, patience=patience)

    async def _fact(self, call: Call, *kinds: type[ApprovalOpened] | type[CallSettled]) -> None:
        """Return when a fact of one of these kinds about the call is on disk."""

        async def look(entries: Sequence[Entry]) -> None:
            events = [entry.event for entry in entries]
            if any(isinstance(event, kinds) and event.call == call.id for event in events):
                scope.cancel()

        with anyio.fail_after(BOUND), anyio.CancelScope() as scope:
            await self.gate.journal.follow(0, look)


def result_of(outcome: Outcome) -> Result:
    assert outcome.ending == "done", outcome.message
    assert outcome.result is not None
    return outcome.result


def refusal_of(action: Callable[[], object]) -> str:
    """The message of the Refusal that an action raises."""
    with pytest.raises(Refusal) as caught:
        action()
    return caught.value.sentence


ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
PLAIN_BASH = {"shellPath": "/bin/bash", "shellArgs": ["--norc"]}


def build_tool_context(terminals: Terminals, records: Records, home: Path, grace: float = 0.2) -> ToolContext:
    environment = {**ENVIRONMENT, "HOME": str(shell_home(home / "person"))}
    settings = TerminalSettings(
        environment=environment, shell="/bin/bash", max_bytes=1 << 20, max_lines=1_000_000, grace=grace
    )
    return ToolContext(terminals=terminals, records=records, settings=settings, own=(home,))


@dataclass
class TerminalToolRunner(ToolRunner):
    """The gate with the terminal tools, and a caller."""

    terminals: Terminals
    reach: ToolContext
    person: anyio.CancelScope
    """The scope of the person who allows everything. Cancel it to have no person."""

    async def reply(self, tool: str, patience: float = BOUND, **input: Any) -> Reply:
        with anyio.fail_after(BOUND + patience):
            return await self.gate.submit(
                Request(tool=tool, input=input, caller=self.caller, patience=patience)
            )

    async def data(self, tool: str, **input: Any) -> Json:
        return result_of(await self.outcome(tool, **input)).data

    async def open(self, **input: Any) -> Terminal:
        """Open a terminal of the caller."""
        data = await self.data("create_tracked_terminal", **input)
        terminal = self.terminals.get(str(data["terminal_id"]))
        assert terminal is not None
        return terminal

    async def run(self, terminal: Terminal, command: str, **input: Any) -> Json:
        return await self.data("execute_command", terminal_id=terminal.id, command=command, **input)

    async def failed(self, tool: str, **input: Any) -> Outcome:
        outcome = await self.outcome(tool, **input)
        assert outcome.ending == "failed", outcome
        return outcome


@asynccontextmanager
async def terminal_tools(
    home: Path, caller: Caller, *, default: Effect = "allow", grace: float = 0.3, agrees: bool = True
) -> AsyncGenerator[TerminalToolRunner]:
    """Everything works; whatever has been opened is ended afterwards. A person who `agrees` allows
    whatever auto-approve leaves to them."""
    places = Places.under(home)
    places.make()
    async with (
        open_journal(places.database, places.head) as journal,
        open_records(places.database) as records,
        anyio.create_task_group() as group,
    ):
        keeper, watch = Keeper(places), TerminalEvents(journal)
        terminals = Terminals(
            keeper,
            places.spool,
            opened=watch.opened,
            ended=watch.ended,
            typed=watch.typed,
            taken=watch.taken,
            released=watch.released,
            asked=watch.asked,
            went_on=watch.went_on,
        )
        reach = build_tool_context(terminals, records, home, grace)
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
        group.start_soon(terminals.run)
        group.start_soon(InputDetector(terminals, reach.marked).run)
        toolbox: dict[str, Tool[Any, Any]] = {}
        rules = Rules.with_default(journal, default, trusted=[caller.workspace or "/"])
        gate = Gate(journal, rules, toolbox, group)
        kinds = (
            *(ExecuteCommand, CreateTrackedTerminal, ListTrackedTerminals, GetTerminalBuffer),
            *(SendToTerminal, WaitForTerminal, SearchTerminalBuffer, CloseTerminal),
        )
        tools: list[Tool[Any, Any]] = [kind(reach) for kind in kinds]
        tools.append(WaitForCall(reach, gate.open, journal))
        toolbox |= {tool.name: tool for tool in tools}
        person = anyio.CancelScope()
        if default == "allow" and agrees:
            group.start_soon(_agree, gate, person)
        try:
            yield TerminalToolRunner(gate, Path(caller.workspace or "/"), caller, terminals, reach, person)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND), suppress(KeeperError):
                await keeper.shutdown(0.0)
            group.cancel_scope.cancel()


async def _agree(gate: Gate, person: anyio.CancelScope) -> None:
    with person:
        await allow_all(gate)


async def allow_all(gate: Gate) -> None:
    """Allow every approval of this gate. Never returns."""

    async def look(entries: Sequence[Entry]) -> None:
        for entry in entries:
            call = gate.open.get(entry.event.call) if isinstance(entry.event, ApprovalOpened) else None
            if call is not None and call.approval is not None and call.approval.open:
                await person_actions.answer(
                    gate, call.approval, Answer(kind="allow", by=PAGE), call.approval.digest
                )

    await gate.journal.follow(0, look)
