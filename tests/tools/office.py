"""The terminal tools behind the real gate, with a real keeper, real shells and the record: what a daemon has of them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from tests.shell_home import shell_home
from tests.tools.desk import BOUND, Desk, done
from tests.tools.person import allow_all

from handrail.daemon.terminal_events import TerminalEvents
from handrail.gate.call import Outcome
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Tool
from handrail.paths import Places
from handrail.store.journal import open_journal
from handrail.store.records import Records, open_records
from handrail.store.values import Caller, Effect, Json
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.open_shell import Means
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals
from handrail.terminal.wait.input_detection import Knowing
from handrail.tools.calls import WaitForCall
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.terminals.close_terminal import CloseTerminal
from handrail.tools.terminals.create_tracked_terminal import CreateTrackedTerminal
from handrail.tools.terminals.get_terminal_buffer import GetTerminalBuffer
from handrail.tools.terminals.list_tracked_terminals import ListTrackedTerminals
from handrail.tools.terminals.search_terminal_buffer import SearchTerminalBuffer
from handrail.tools.terminals.send_to_terminal import SendToTerminal
from handrail.tools.terminals.wait_for_terminal import WaitForTerminal
from handrail.tools.tool_context import Reach

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
PLAIN_BASH = {"shellPath": "/bin/bash", "shellArgs": ["--norc"]}


def reach_of(terminals: Terminals, records: Records, home: Path, grace: float = 0.2) -> Reach:
    environment = {**ENVIRONMENT, "HOME": str(shell_home(home / "person"))}
    means = Means(
        environment=environment, shell="/bin/bash", max_bytes=1 << 20, max_lines=1_000_000, grace=grace
    )
    return Reach(terminals=terminals, records=records, means=means, own=(home,))


@dataclass
class Office(Desk):
    """The gate with the terminal tools, and who uses them."""

    terminals: Terminals
    reach: Reach
    person: anyio.CancelScope
    """Of whoever agrees to everything; cancelled, nobody is there."""

    async def reply(self, tool: str, patience: float = BOUND, **input: Any) -> Reply:
        with anyio.fail_after(BOUND + patience):
            return await self.gate.submit(
                Request(tool=tool, input=input, caller=self.caller, patience=patience)
            )

    async def data(self, tool: str, **input: Any) -> Json:
        return done(await self.outcome(tool, **input)).data

    async def open(self, **input: Any) -> Terminal:
        """A terminal of the caller's; a bash without start-up files unless told otherwise."""
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
async def office(
    home: Path, caller: Caller, *, default: Effect = "allow", grace: float = 0.3, agrees: bool = True
) -> AsyncGenerator[Office]:
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
        reach = reach_of(terminals, records, home, grace)
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
        group.start_soon(terminals.run)
        group.start_soon(Knowing(terminals, reach.marked).run)
        toolbox: dict[str, Tool[Any, Any]] = {}
        rules = Rules.plain(journal, default, trusted=[caller.workspace or "/"])
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
            yield Office(gate, Path(caller.workspace or "/"), caller, terminals, reach, person)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND), suppress(KeeperError):
                await keeper.shutdown(0.0)
            group.cancel_scope.cancel()


async def _agree(gate: Gate, person: anyio.CancelScope) -> None:
    with person:
        await allow_all(gate)
