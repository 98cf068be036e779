"""list_tracked_terminals: who is shown what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import BOUND, TerminalToolRunner, terminal_tools

from handrail.store.values import Caller, Owner
from handrail.terminal.terminal import TerminalNote

pytestmark = pytest.mark.anyio


async def listed(at: TerminalToolRunner, **input: Any) -> list[Any]:
    data: Any = await at.data("list_tracked_terminals", **input)
    return data["terminals"]


async def test_a_terminal_is_listed_with_all_that_is_known_of_it(
    home: Path, root: Path, caller: Caller
) -> None:
    (root / "below").mkdir()
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(name="mine", cols=100, rows=30)
        await at.run(terminal, "cd below")
        await at.run(terminal, "false")
        (told,) = await listed(at)
        text = (await at.result("list_tracked_terminals")).text
    at_times = told.pop("created_at"), told.pop("last_output_at")
    assert at_times == tuple(sorted(at_times))
    assert [(item["line"], item["exit_code"], item["running"]) for item in told.pop("commands")] == [
        ("cd below", 0, False),
        ("false", 1, False),
    ]
    assert told == {
        "id": terminal.id,
        "name": "mine",
        "kind": "tracked",
        "shell": "/bin/bash",
        "cwd": f"{root}/below",
        "pid": terminal.pid,
        "running": True,
        "exit_code": None,
        "signal": None,
        "bytes": terminal.tail.end,
        "size": [100, 30],
        "owner": {"person": False, "name": "test", "workspace": str(root)},
        "busy": False,
        "foreground": {"pid": terminal.pid, "name": "bash"},
        "taken_over_by": None,
        "waiting_for_input": None,
        "forgotten": False,
    }
    assert f"{terminal.id}  mine  idle" in text
    assert "last: false (exit code 1)" in text


async def test_what_runs_in_it_and_who_has_it_is_told(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.data("send_to_terminal", terminalId=terminal.id, text="sleep 1000")
        with anyio.fail_after(BOUND):
            while not ((row := (await listed(at))[0])["busy"] and row["commands"]):
                await terminal.changed()
        terminal.take("a person on the page", holds=True)
        (told,) = await listed(at)
    assert (told["foreground"]["name"], told["taken_over_by"]) == ("sleep", "a person on the page")
    assert told["commands"][-1]["running"]


async def test_ended_ones_are_listed_with_how_they_ended_unless_only_running_ones_are_wanted(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        ended = await at.open(shellPath="/bin/sh", shellArgs=["-c", "kill -SEGV $$"])
        with anyio.fail_after(BOUND):
            await ended.wait()
        alive = await at.open(shellPath="/bin/cat")
        every, running = await listed(at), await listed(at, runningOnly=True)
    assert [item["id"] for item in every] == [alive.id, ended.id]
    assert [item["id"] for item in running] == [alive.id]
    assert (every[1]["running"], every[1]["signal"]) == (False, "SIGSEGV")


async def test_those_of_other_workspaces_are_named_but_not_what_they_run(
    home: Path, root: Path, caller: Caller
) -> None:
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    async with terminal_tools(home, caller) as at:
        other = replace(at, caller=replace(caller, key="other", workspace=str(elsewhere)))
        theirs = await other.open()
        note = TerminalNote(of="shell", name="sh", owner=Owner(person=True, name="a person"))
        persons = await at.terminals.open(["/bin/cat"], str(root), {"PATH": "/bin"}, note=note)
        mine = (await at.reply("execute_command", command="cat", background=True)).call.terminal
        their_call = (await other.reply("execute_command", command="cat", background=True)).call.terminal
        told = {item["id"]: item for item in await listed(at)}
    assert set(told) == {theirs.id, persons.id, mine}
    assert their_call not in told
    assert "commands" not in told[theirs.id]
    assert told[persons.id]["owner"]["person"]
    assert told[str(mine)]["kind"] == "command"


async def test_when_there_is_none_that_is_said(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        assert "create_tracked_terminal opens one" in (await at.result("list_tracked_terminals")).text
