"""send_to_terminal: what is typed, to whom an answer holds, and when nothing is typed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.keeper_terminals import until
from tests.support.tool_runner import BOUND, TerminalToolRunner, terminal_tools

from handrail.store.actor import PERSON
from handrail.store.values import Caller, InputPreview, Owner
from handrail.terminal.terminal import InputSender, Terminal, TerminalNote

pytestmark = pytest.mark.anyio


async def shows(at: TerminalToolRunner, terminal: Terminal, words: str) -> None:
    """Return when the terminal has printed these words."""
    data = await at.data("wait_for_terminal", terminalId=terminal.id, until="pattern", value=words, after=0)
    assert data["woke"] == "pattern", data


async def test_text_is_typed_with_enter_and_what_came_of_it_is_read_from_there(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        sent = await at.data("send_to_terminal", terminalId=terminal.id, text="echo $((40 + 2))")
        await shows(at, terminal, "^42$")
        data = await at.data("get_terminal_buffer", terminalId=terminal.id, after=sent["next"])
    assert (sent["typed"], sent["foreground"]) == ("echo $((40 + 2))\r", "bash")
    assert "42" in str(data["output"])
    history: Any = data["input_history"]
    assert [(item["by"], item["person"], item["text"]) for item in history] == [
        ("test", False, "echo $((40 + 2))")
    ]


async def test_keys_are_pressed_after_the_text_and_then_no_enter_is_added(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/cat", shellArgs=["-v"])
        for keys, typed in [
            ({"text": "ab", "keys": ["backspace", "enter"]}, "ab\x7f\r"),
            ({"text": "x", "addNewline": False}, "x"),
            ({"text": "", "addNewline": True}, "\r"),
            ({"text": "y\nz", "keys": ["ctrl-d"], "addNewline": True}, "y\rz\r\x04"),
        ]:
            sent = await at.data("send_to_terminal", terminalId=terminal.id, **keys)
            assert sent["typed"] == typed
        with anyio.fail_after(BOUND):
            await terminal.wait()
        data = await at.data("get_terminal_buffer", terminalId=terminal.id)
    assert str(data["output"]).split("\n")[-5:] == ["x", "y", "z", "y", "z"] or "y\nz" in str(data["output"])


async def test_cursor_keys_are_those_the_program_has_asked_for(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        plain = await at.open(shellPath="/bin/cat")
        asked = await at.open(shellPath="/bin/sh", shellArgs=["-c", "printf '\\033[?1hready'; exec cat"])
        await shows(at, asked, "ready")
        first = await at.data("send_to_terminal", terminalId=plain.id, keys=["up"])
        second = await at.data("send_to_terminal", terminalId=asked.id, keys=["up"])
    assert (first["typed"], second["typed"]) == ("\x1b[A", "\x1bOA")


async def test_an_approval_shows_exactly_what_is_typed_and_to_which_program(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller, default="ask") as at:
        created = await at.allowed("create_tracked_terminal", name="mine")
        assert created.result is not None
        mine = str(created.result.data["terminal_id"])
        call = await at.waiting("send_to_terminal", terminalId=mine, text="sleep 100", keys=["enter"])
        assert call.approval is not None
        asked = call.approval.asked
        assert asked.preview == InputPreview(
            terminal=mine,
            name="mine",
            text="sleep 100\r",
            keys=("enter",),
            cwd=str(root),
            foreground="bash",
            owner="test",
        )
        assert asked.risk == "medium"
        assert (await at.allow(call)).ending == "done"


async def test_an_answer_meant_for_one_program_never_reaches_another(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller, default="ask") as at:
        created = await at.allowed("create_tracked_terminal")
        assert created.result is not None
        terminal = at.terminals.get(str(created.result.data["terminal_id"]))
        assert terminal is not None
        call = await at.waiting("send_to_terminal", terminalId=terminal.id, text="rm precious")
        await terminal.write(b"cat > typed\r")
        await until((at.root / "typed").exists)
        outcome = await at.allow(call)
        assert outcome.ending == "failed"
        assert "no longer what would run" in outcome.message
        await terminal.write(b"\x04")
        await at.data("wait_for_terminal", terminalId=terminal.id, until="prompt")
        assert (at.root / "typed").read_bytes() == b""


async def test_an_answer_holds_for_the_folder_that_was_shown(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller, default="ask") as at:
        created = await at.allowed("create_tracked_terminal", shellPath="bash")
        assert created.result is not None
        terminal = at.terminals.get(str(created.result.data["terminal_id"]))
        assert terminal is not None
        (at.root / "elsewhere").mkdir()
        (at.root / "elsewhere" / "precious").touch()
        moved = await at.waiting("send_to_terminal", terminalId=terminal.id, text="rm *")
        await terminal.write(b"cd elsewhere; touch went\r")
        await until((at.root / "elsewhere" / "went").exists)
        await at.data("wait_for_terminal", terminalId=terminal.id, until="prompt")
        outcome = await at.allow(moved)
        assert outcome.ending == "failed"
        assert "no longer what would run" in outcome.message
        assert (at.root / "elsewhere" / "precious").exists()


async def test_an_answer_holds_for_the_very_bytes_that_were_shown(home: Path, caller: Caller) -> None:
    script = "read x; printf '\\033[?1hready'; read x; printf 'got <%s>' \"$x\"; sleep 100"
    async with terminal_tools(home, caller, default="ask") as at:
        created = await at.allowed("create_tracked_terminal", shellPath="/bin/sh", shellArgs=["-c", script])
        assert created.result is not None
        terminal = at.terminals.get(str(created.result.data["terminal_id"]))
        assert terminal is not None
        call = await at.waiting("send_to_terminal", terminalId=terminal.id, keys=["up", "enter"])
        await terminal.write(b"\r")
        await shows(at, terminal, "ready")
        outcome = await at.allow(call)
        assert outcome.ending == "failed"
        assert "no longer what would run" in outcome.message


async def test_auto_approve_still_asks_before_typing_into_a_persons_own_terminal(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller, agrees=False) as at:
        note = TerminalNote(of="shell", name="my shell", owner=Owner(person=True, name="a person"))
        env = {"PATH": "/usr/bin:/bin"}
        terminal = await at.terminals.open(["/bin/cat"], str(root), env, note=note)
        call = await at.waiting("send_to_terminal", terminalId=terminal.id, text="hello")
        assert call.approval is not None
        assert (call.approval.asked.risk, call.approval.asked.reasons) == (
            "high",
            ("types into your own terminal",),
        )
        assert terminal.tail.end == 0
        assert (await at.allow(call)).ending == "done"
        await shows(at, terminal, "hello")


async def test_a_terminal_that_a_person_took_over_takes_no_agents_keys_until_it_is_released(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/cat")
        terminal.take("a person on the page", holds=True)
        sentence = await at.refusal("send_to_terminal", terminalId=terminal.id, text="hello")
        assert "taken over by a person on the page" in sentence
        assert "not closed" in await at.refusal("close_terminal", terminalId=terminal.id)
        terminal.release("a person on the page")
        await at.data("send_to_terminal", terminalId=terminal.id, text="hello")


async def test_a_secret_is_never_typed_by_an_agent(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(
            shellPath="/bin/bash",
            shellArgs=["-c", "read -rsp 'Password: ' secret; echo; echo got ${#secret}"],
        )
        await shows(at, terminal, "Password:")
        sentence = await at.refusal("send_to_terminal", terminalId=terminal.id, text="hunter2")
        assert "only a person may give" in sentence
        await terminal.type(b"abc\r", InputSender(person=True, name="a person"))
        await shows(at, terminal, "got 3")


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"terminalId": "tnone", "text": "x"}, "There is no terminal tnone. list_tracked_terminals names"),
        ({"keys": ["hyper-q"]}, "There is no key called 'hyper-q'"),
        ({"text": "", "addNewline": False}, "nothing to type"),
        ({"text": "x" * 70_000}, "70,001 bytes, and 65,536 can be typed at once"),
        ({"text": "\ud800"}, "cannot be encoded"),
    ],
)
async def test_what_cannot_be_typed_gets_a_sentence(
    home: Path, caller: Caller, input: dict[str, Any], words: str
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/cat")
        assert words in await at.refusal("send_to_terminal", **{"terminalId": terminal.id, **input})


async def test_a_terminal_that_has_ended_says_how_and_what_to_do(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/sh", shellArgs=["-c", "exit 3"])
        with anyio.fail_after(BOUND):
            await terminal.wait()
        sentence = await at.refusal("send_to_terminal", terminalId=terminal.id, text="hello")
    assert f"Terminal {terminal.id} has ended (exit code 3)" in sentence
    assert "create_tracked_terminal opens another" in sentence


async def test_another_agents_command_takes_no_keys_of_mine(home: Path, root: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        elsewhere = root.parent / "elsewhere"
        elsewhere.mkdir()
        await at.gate.rules.trust(str(elsewhere), None, PERSON)
        other = replace(at, caller=replace(caller, key="other", workspace=str(elsewhere)))
        reply = await other.reply("execute_command", command="cat", background=True)
        assert reply.call.terminal is not None
        sentence = await at.refusal("send_to_terminal", terminalId=reply.call.terminal, text="hello")
    assert "belongs to a call of another agent" in sentence
