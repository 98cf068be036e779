"""close_terminal: the whole tree ends, and what was stopped is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.keeper_terminals import until
from tests.support.processes import ProcessMark, kill_at_end
from tests.support.tool_runner import BOUND, terminal_tools

from handrail.store.values import Caller, Owner
from handrail.terminal.terminal import TerminalNote

pytestmark = pytest.mark.anyio


async def test_everything_in_it_ends_also_what_left_its_session(home: Path, caller: Caller) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with terminal_tools(home, caller) as at:
            terminal = await at.open()
            await at.run(terminal, f"setsid sleep {mark.seconds} & sleep {mark.seconds} & true")
            await until(lambda: len(mark.pids()) == 2)
            result = await at.result("close_terminal", terminalId=terminal.id)
            assert not mark.pids()
            again = await at.data("close_terminal", terminalId=terminal.id)
    stopped: Any = result.data["processes_stopped"]
    assert sorted(item["name"] for item in stopped)[-2:] == ["sleep", "sleep"]
    assert (result.data["was_running"], result.data["processes_left"]) == (True, [])
    assert "Stopped" in result.text
    assert again["was_running"] is False


async def test_ones_own_is_closed_without_a_person_and_any_other_asks(
    home: Path, root: Path, caller: Caller
) -> None:
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    async with terminal_tools(home, caller, default="ask") as at:
        own = (await at.allowed("create_tracked_terminal")).result
        assert own is not None
        assert (await at.data("close_terminal", terminalId=own.data["terminal_id"]))["was_running"]
        note = TerminalNote(of="shell", name="sh", owner=Owner(person=True, name="a person"))
        persons = await at.terminals.open(["/bin/cat"], str(root), {"PATH": "/bin"}, note=note)
        call = await at.waiting("close_terminal", terminalId=persons.id)
        assert call.approval is not None
        assert (call.approval.asked.risk, call.approval.asked.reasons) == (
            "high",
            ("ends your own terminal",),
        )
        other = replace(at, caller=replace(caller, key="other", workspace=str(elsewhere)))
        theirs = (await other.allowed("create_tracked_terminal")).result
        assert theirs is not None
        call = await at.waiting("close_terminal", terminalId=theirs.data["terminal_id"])
        assert call.approval is not None
        assert call.approval.asked.reasons == ("ends a terminal of another workspace",)


async def test_a_stubborn_program_is_killed_after_the_grace(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller, grace=0.2) as at:
        terminal = await at.open(
            shellPath="/bin/bash",
            shellArgs=["-c", "trap '' HUP TERM INT; echo up; while :; do sleep 0.05; done"],
        )
        await at.data("wait_for_terminal", terminalId=terminal.id, until="pattern", value="up")
        reply = await at.reply("close_terminal", terminalId=terminal.id)
        assert reply.outcome is not None
        assert reply.outcome.result is not None
        with anyio.fail_after(BOUND):
            assert (await terminal.wait()).signal == "SIGKILL"
    assert reply.outcome.result.data["signal"] == "SIGKILL"
    assert "SIGKILL" in [item.signal for item in reply.call.receipt.signals]


async def test_a_terminal_nobody_knows_is_refused(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        assert "list_tracked_terminals names" in await at.refusal("close_terminal", terminalId="tnone")
