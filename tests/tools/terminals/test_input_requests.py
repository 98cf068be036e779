"""A command that waits for input: the call is handed back with the question, once for each."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.tool_runner import TerminalToolRunner, result_of, terminal_tools

from handrail.gate import person_actions
from handrail.gate.gate import Reply
from handrail.server.mcp.tool_results import to_result
from handrail.store.actor import PERSON
from handrail.store.values import Caller, Json
from handrail.terminal.terminal import InputSender

pytestmark = pytest.mark.anyio


def told(at: TerminalToolRunner, reply: Reply) -> dict[str, Any]:
    """What the client reads."""
    salvage = at.gate.salvage(reply.call) if reply.outcome is None else None
    data = to_result(reply, salvage and salvage.result).structured_content
    assert data is not None
    return data


async def call_of(at: TerminalToolRunner, id: str, **input: Any) -> Json:
    data: Any = await at.data("wait_for_call", call_id=id, **input)
    return data["call"]


@pytest.mark.parametrize("in_terminal", [False, True])
async def test_a_command_that_asks_is_handed_back_and_goes_on_when_it_is_answered(
    home: Path, caller: Caller, in_terminal: bool
) -> None:
    script = "echo first; read -p 'Name? ' name; read -p 'Age? ' age; echo $name is $age"
    async with terminal_tools(home, caller) as at:
        asked_for: dict[str, Any] = {"command": script}
        if in_terminal:
            asked_for["terminal_id"] = (await at.open()).id
        reply = await at.reply("execute_command", **asked_for)
        data = told(at, reply)
        terminal, call = data["terminal_id"], data["call_id"]
        still = await call_of(at, call, wait_seconds=0.5)
        await at.data("send_to_terminal", terminalId=terminal, text="Ada")
        again: Any = await call_of(at, call)
        await at.data("send_to_terminal", terminalId=terminal, text="36")
        ended: Any = await call_of(at, call)
    asked = data["waiting_for_input"]
    assert (data["status"], asked["prompt"], asked["sure"], asked["secret"]) == (
        "waiting_for_input",
        "Name?",
        "certain",
        False,
    )
    assert data["output"] == "first\nName? "
    assert f'send_to_terminal (terminalId "{terminal}")' in data["message"]
    assert f'wait_for_call with call_id "{call}"' in data["message"]
    assert still["status"] == "waiting_for_input", "told when the time is up, not at once"
    assert (again["status"], again["waiting_for_input"]["prompt"]) == ("waiting_for_input", "Age?")
    assert (ended["status"], ended["result"]["exit_code"]) == ("done", 0)
    assert "Ada is 36\n" in ended["result"]["output"]


async def test_a_secret_is_for_a_person_and_the_call_then_goes_on(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        reply = await at.reply(
            "execute_command", command="read -rsp 'Password: ' x; echo; echo ${#x} letters"
        )
        data = told(at, reply)
        terminal = at.terminals.get(str(data["terminal_id"]))
        assert terminal is not None
        assert "only a person may give" in await at.refusal(
            "send_to_terminal", terminalId=terminal.id, text="hunter2"
        )
        await terminal.type(b"hunter2\r", InputSender(person=True, name="a person"))
        ended: Any = await call_of(at, reply.call.id)
    assert (data["status"], data["waiting_for_input"]["secret"]) == ("waiting_for_input", True)
    assert "only a person may type" in data["message"]
    assert (ended["status"], "7 letters\n" in ended["result"]["output"]) == ("done", True)


async def test_a_program_in_raw_mode_that_rests_behind_some_text_is_likely_to_ask_after_a_while(
    home: Path, caller: Caller
) -> None:
    program = (
        "import sys, tty; tty.setraw(0); sys.stdout.write('Proceed? '); sys.stdout.flush(); sys.stdin.read(1)"
    )
    async with terminal_tools(home, caller) as at:
        reply = await at.reply("execute_command", command=f'python3 -c "{program}"')
        data = told(at, reply)
        assert person_actions.cancel(at.gate, reply.call, PERSON)
    assert (data["status"], data["waiting_for_input"]["sure"]) == ("waiting_for_input", "likely")
    assert data["elapsed_ms"] >= 2000
    assert "probably waits for input" in data["message"]


async def test_a_spinner_in_raw_mode_asks_nothing(home: Path, caller: Caller) -> None:
    program = (
        "import sys, time, tty; tty.setraw(0)\n"
        "for n in range(30): sys.stdout.write('\\rworking ' + '|/-'[n % 3] + ' '); sys.stdout.flush(); time.sleep(0.1)"
    )
    async with terminal_tools(home, caller) as at:
        outcome = await at.outcome("execute_command", command=f'python3 -c "{program}"')
    assert result_of(outcome).data["exit_code"] == 0


async def test_a_command_that_only_works_is_not_handed_back(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        reply = await at.reply("execute_command", command="sleep 3 < /dev/null; echo done")
    assert reply.outcome is not None
    assert not reply.call.handed_back
