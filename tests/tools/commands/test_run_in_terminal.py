"""execute_command in a terminal that is there: its own output and exit code, and a shell that keeps its state."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.keeper_terminals import until
from tests.support.tool_runner import BOUND, terminal_tools

from handrail.gate import person_actions
from handrail.gate.call import Call, Outcome
from handrail.store.actor import PERSON
from handrail.store.values import Caller, InputPreview
from handrail.terminal.terminal import Terminal

pytestmark = pytest.mark.anyio
SHELLS = ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"]


async def prints(terminal: Terminal, words: bytes) -> None:
    """Returns once this is in its output."""
    await until(lambda: words in terminal.tail.read(0)[0])


@pytest.mark.parametrize("shell", SHELLS)
async def test_each_line_gives_its_own_output_and_exit_code_and_the_shell_keeps_its_state(
    home: Path, root: Path, caller: Caller, shell: str
) -> None:
    (root / "below").mkdir()
    variable = "set -x GREETING hello" if shell.endswith("fish") else "export GREETING=hello"
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath=shell)
        moved = await at.run(terminal, "cd below")
        await at.run(terminal, variable)
        said = await at.run(
            terminal, "echo $GREETING from (pwd)" if "fish" in shell else "echo $GREETING from $(pwd)"
        )
        failed = await at.run(terminal, "sh -c 'echo oops >&2; exit 7'")
    assert (moved["exit_code"], moved["cwd"], moved["output_captured"]) == (0, f"{root}/below", False)
    assert (said["output"], said["exit_code"]) == (f"hello from {root}/below\n", 0)
    assert (failed["output"], failed["exit_code"], failed["terminal_id"]) == ("oops\n", 7, terminal.id)
    assert isinstance(failed["duration_ms"], int)


@pytest.mark.parametrize("shell", SHELLS)
async def test_several_lines_are_one_command(home: Path, caller: Caller, shell: str) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath=shell)
        data = await at.run(terminal, "echo one\necho 'two  three'\nfalse")
        after = await at.run(terminal, "echo next")
    assert (data["output"], data["exit_code"]) == ("one\ntwo  three\n", 1)
    assert after["output"] == "next\n"


async def test_several_lines_wait_until_a_slow_prompt_takes_them(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.run(terminal, "PS1='$(sleep 0.5)$ '")  # between the prompt's mark and the line editor
        data = await at.run(terminal, "echo one\necho two")
    assert (data["output"], data["exit_code"]) == ("one\ntwo\n", 0)


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_tab_is_a_tab_and_never_the_completion_key(home: Path, caller: Caller, shell: str) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath=shell)
        outcome = await at.outcome("execute_command", terminal_id=terminal.id, command="echo 'a\tb' | od -c")
    if shell.endswith("fish"):  # which drops it from what is pasted
        assert "does not take tabs" in outcome.message
    else:
        assert outcome.result is not None
        assert r"a  \t   b" in str(outcome.result.data["output"])


async def test_a_shell_without_marks_is_followed_by_what_runs_in_it(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/dash")
        result = await at.result(
            "execute_command", terminal_id=terminal.id, command="sleep 0.7; echo $((6 * 7))"
        )
    assert result.data["exit_code"] is None
    assert "42\n" in str(result.data["output"])
    assert "exit code is not known" in result.text


async def test_only_what_was_asked_for_of_the_output_is_shown(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.run(terminal, "echo 7 of another command")
        cut = await at.run(terminal, "seq 1 1000", output_head=2, output_tail=1)
        found = await at.run(terminal, "seq 1 1000", output_grep="^7.?$")
    assert str(cut["output"]).startswith("1\n2\n[… ")
    assert str(found["output"]).split("\n") == ["7: 7", *(f"{n}: {n}" for n in range(70, 80)), ""]


async def test_a_busy_terminal_is_not_typed_into(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        reply = await at.reply(
            "execute_command", terminal_id=terminal.id, command="sleep 1000", background=True
        )
        assert (reply.outcome, reply.call.status) == (None, "running")
        with anyio.fail_after(BOUND):
            while (runs := (await terminal.look()).foreground) is None or runs.name != "sleep":
                with anyio.move_on_after(0.02):  # the keeper does not tell that a fork has called exec
                    await terminal.changed()
        sentence = await at.refusal("execute_command", terminal_id=terminal.id, command="echo no")
    assert "is busy: sleep (sleep 1000) runs in it, so nothing was typed" in sentence
    assert "ctrl-c" in sentence


async def test_of_two_lines_at_once_one_is_typed_and_the_other_told_so(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        outcomes: list[Outcome] = []

        async def run(line: str) -> None:
            outcomes.append(await at.outcome("execute_command", terminal_id=terminal.id, command=line))

        async with anyio.create_task_group() as group:
            group.start_soon(run, "read -t 1 x; echo $x 1")
            group.start_soon(run, "read -t 1 x; echo $x 2")
    failed, done = sorted(outcomes, key=lambda outcome: outcome.ending == "done")
    assert "is busy" in failed.message
    assert done.result is not None
    assert str(done.result.data["output"]) in (" 1\n", " 2\n", "1\n", "2\n")


async def test_a_cancel_reaches_a_password_prompt_too(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        command = "bash -c 'read -rsp Password: x; echo $x'"
        reply = await at.reply("execute_command", terminal_id=terminal.id, command=command)
        assert reply.outcome is None
        assert terminal.asks is not None
        assert terminal.asks.secret
        assert person_actions.cancel(at.gate, reply.call, PERSON)
        await until(lambda: reply.call.receipt.stopped)
        after = await at.run(terminal, "echo alive")
        history: Any = (await at.data("get_terminal_buffer", terminalId=terminal.id))["input_history"]
    assert after["output"] == "alive\n"
    assert ("handrail", "^C") in [(item["by"], item["text"]) for item in history]


async def test_a_client_that_leaves_does_not_interrupt_a_person_who_took_over(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        calls: list[Call] = []
        async with anyio.create_task_group() as group:
            line = {"terminal_id": terminal.id, "command": "sleep 1000"}
            group.start_soon(lambda: at.outcome("execute_command", **line))
            with anyio.fail_after(BOUND):
                while not (await terminal.look()).busy:
                    await terminal.changed()
            calls.extend(at.gate.open.values())
            terminal.take("a person on the page", holds=True)
            group.cancel_scope.cancel()
        (call,) = calls
        with anyio.fail_after(BOUND):
            await call.settled()
        await until(lambda: bool(call.receipt.processes_left))
        assert (await terminal.look()).busy
    assert (call.receipt.signals, [item.name for item in call.receipt.processes_left]) == ((), ["sleep"])
    assert not call.receipt.stopped


async def test_cancel_interrupts_the_line_and_leaves_the_terminal(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        reply = await at.reply(
            "execute_command", 0.1, terminal_id=terminal.id, command="echo begun; sleep 1000"
        )
        assert reply.outcome is None
        await prints(terminal, b"begun\r\n")  # in the echo of the line, a semicolon follows
        assert person_actions.cancel(at.gate, reply.call, PERSON)
        await until(lambda: reply.call.receipt.stopped)
        after = await at.run(terminal, "echo alive")
        assert terminal.exit is None
    outcome = reply.call.outcome
    assert outcome is not None
    assert outcome.result is not None
    assert outcome.result.data["output"] == "begun\n"
    assert [item.signal for item in reply.call.receipt.signals] == ["SIGINT"]
    assert not reply.call.receipt.processes_left
    assert after["output"] == "alive\n"


async def test_what_does_not_heed_the_interrupt_is_said_to_run_on(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        stubborn = "sh -c 'trap \"\" INT; echo deaf; sleep 1000'"
        reply = await at.reply(
            "execute_command", terminal_id=terminal.id, command=stubborn, timeout_seconds=1.0
        )
    outcome = reply.call.outcome
    assert outcome is not None
    assert len(reply.call.receipt.processes_left) == 1
    assert not reply.call.receipt.stopped
    assert "ran out of time after 1 s. Ctrl-C was sent, but it still runs" in outcome.message
    assert outcome.result is not None
    assert str(outcome.result.data["output"]).startswith("deaf\n")


async def test_a_line_out_of_time_is_interrupted(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        outcome = await at.failed(
            "execute_command", terminal_id=terminal.id, command="echo begun; sleep 1000", timeout_seconds=0.5
        )
        after = await at.run(terminal, "echo alive")
    assert "It was interrupted with Ctrl-C" in outcome.message
    assert outcome.result is not None
    assert str(outcome.result.data["output"]).startswith("begun\n")
    assert after["output"] == "alive\n"


async def test_complete_gives_the_output_so_far_and_lets_it_run(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        reply = await at.reply(
            "execute_command", 0.1, terminal_id=terminal.id, command="echo begun; read x; echo $x"
        )
        await prints(terminal, b"begun\r\n")  # in the echo of the line, a semicolon follows
        assert person_actions.complete(at.gate, reply.call, PERSON)
        assert reply.call.outcome is not None
        assert reply.call.outcome.result is not None
        data = reply.call.outcome.result.data
        assert (data["exit_code"], data["output"], data["output_captured"]) == (None, "begun\n", True)
        await at.data("send_to_terminal", terminalId=terminal.id, text="on")
        woke = await at.data("wait_for_terminal", terminalId=terminal.id, until="prompt")
    assert "on\non\n" in str(woke["output"])


async def test_a_line_that_ends_the_shell_tells_its_exit_code(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        data = await at.run(terminal, "exit 5")
    assert data["exit_code"] == 5


@pytest.mark.parametrize("line", ["echo 'unclosed", "for n in 1 2; do"])
async def test_an_unfinished_line_is_given_up(home: Path, caller: Caller, line: str) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        sentence = await at.refusal("execute_command", terminal_id=terminal.id, command=line)
        after = await at.run(terminal, "echo fresh")
    assert "most likely the line is unfinished" in sentence
    assert after["output"] == "fresh\n"


async def test_the_prompt_after_an_unfinished_line_is_not_taken_for_that_of_the_next(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.run(terminal, "PROMPT_COMMAND+=('sleep 0.5')")
        await at.refusal("execute_command", terminal_id=terminal.id, command="echo 'unclosed")
        after = await at.run(terminal, "echo fresh")
    assert (after["output"], after["exit_code"]) == ("fresh\n", 0)


async def test_a_line_that_runs_nothing_is_done_at_the_next_prompt(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        comment = await at.run(terminal, "# nothing")
        wrong = await at.run(terminal, "echo )")
    assert (comment["output_captured"], comment["exit_code"]) in ((False, None), (False, 0), (True, None))
    assert "syntax error" in str(wrong["output"])


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"terminal_id": "tnone"}, "There is no terminal tnone"),
        ({"cwd": "."}, "type cd or export first"),
        ({"env": {"A": "b"}}, "type cd or export first"),
        ({"command": "echo \x1b[31m"}, "control character"),
    ],
)
async def test_bad_input_gets_a_sentence_and_nothing_is_typed(
    home: Path, caller: Caller, input: dict[str, Any], words: str
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        before = terminal.last_input
        asked = {"terminal_id": terminal.id, "command": "echo hello", **input}
        assert words in await at.refusal("execute_command", **asked)
        assert terminal.last_input == before


async def test_a_person_is_asked_about_the_typing_and_sees_the_shell_that_reads_it(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller, default="ask") as at:
        created = (await at.allowed("create_tracked_terminal")).result
        assert created is not None
        mine = str(created.data["terminal_id"])
        call = await at.waiting("execute_command", terminal_id=mine, command="make")
        assert call.approval is not None
        asked = call.approval.asked
        preview = asked.preview
        assert isinstance(preview, InputPreview)
        assert (preview.text, preview.foreground, preview.terminal) == ("make\r", "bash", mine)
        assert [item.action for item in asked.claims] == ["type"]
        assert "aliases and state may change its meaning" in asked.reasons[0]
