"""wait_for_terminal: it misses nothing, it always ends, and it says why."""

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import TerminalToolRunner, terminal_tools

from handrail.store.values import Caller, Json
from handrail.terminal.terminal import InputSender, Terminal

pytestmark = pytest.mark.anyio


async def wait(
    at: TerminalToolRunner, terminal: Terminal, until: str, value: Any = None, **input: Any
) -> Json:
    return await at.data("wait_for_terminal", terminalId=terminal.id, until=until, value=value, **input)


async def send(at: TerminalToolRunner, terminal: Terminal, text: str) -> Json:
    return await at.data("send_to_terminal", terminalId=terminal.id, text=text)


async def test_until_exit_it_tells_how_it_ended_and_what_it_printed(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/sh", shellArgs=["-c", "echo bye; sleep 0.3; exit 6"])
        woke = await wait(at, terminal, "exit")
        again = await wait(at, terminal, "pattern", "never")
        there = await wait(at, terminal, "pattern", "b.e")
    assert (woke["woke"], woke["detail"], woke["output"]) == (
        "exit",
        {"exit_code": 6, "signal": None},
        "bye\n",
    )
    assert (again["woke"], again["running"], again["exit_code"]) == ("exit", False, 6)
    assert (there["woke"], there["running"]) == ("pattern", False), "it was printed before the end"


async def test_a_pattern_that_came_before_the_wait_is_found_but_the_echo_of_the_line_is_not(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await send(at, terminal, "sleep 0.5; echo READ''Y; sleep 100  # READY?")
        woke = await wait(at, terminal, "pattern", "READY")
    assert (woke["woke"], woke["detail"]) == ("pattern", {"matched": "READY", "line": "READY"})


async def test_a_pattern_is_found_across_pieces_lines_and_colours(home: Path, caller: Caller) -> None:
    program = r"printf 'list'; sleep 0.3; printf '\033[31mening\033[0m on\n'; sleep 0.3; printf 'port 42: '; sleep 100"
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/sh", shellArgs=["-c", program])
        woke = await wait(at, terminal, "pattern", r"^listening on\nport (\d+): $")
    assert woke["detail"] == {"matched": "listening on\nport 42: ", "line": "listening on"}
    assert str(woke["output"]) == "listening on\nport 42: "


async def test_a_pattern_at_the_very_end_of_an_ended_program_wins_over_its_end(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(
            shellPath="/bin/sh", shellArgs=["-c", "sleep 0.3; seq 100000; echo last words"]
        )
        woke = await wait(at, terminal, "pattern", "last words")
    assert woke["woke"] == "pattern"
    assert int(str(woke["output_left_out"])) > 0


async def test_a_catastrophic_pattern_is_searched_and_look_around_is_refused(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/sh", shellArgs=["-c", f"echo {'a' * 40}; sleep 100"])
        sentence = await at.refusal(
            "wait_for_terminal", terminalId=terminal.id, until="pattern", value="(a+)+$(?<=b)"
        )
        woke = await wait(at, terminal, "pattern", "(a+)+b", timeout_seconds=0.3)
        there = await wait(at, terminal, "pattern", "(a+)+$")
    assert "look-around and backreferences are not supported" in sentence
    assert (woke["woke"], there["woke"]) == ("timeout", "pattern")


async def test_idle_is_quiet_for_as_long_as_was_said(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(
            shellPath="/bin/sh",
            shellArgs=["-c", "for n in 1 2 3 4 5; do echo $n; sleep 0.1; done; sleep 100"],
        )
        woke = await wait(at, terminal, "idle", 1.5)
        at_once = await wait(at, terminal, "idle", 0.5, timeout_seconds=0)
    assert (woke["woke"], woke["output"]) == ("idle", "1\n2\n3\n4\n5\n")
    assert at_once["woke"] == "idle", "no time to wait is time to look"


@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/dash"])
async def test_back_at_the_prompt_the_last_exit_code_is_told_where_the_shell_tells_it(
    home: Path, caller: Caller, shell: str
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath=shell)
        await send(at, terminal, "sleep 0.5; sh -c 'exit 9'")
        woke = await wait(at, terminal, "prompt")
        again = await wait(at, terminal, "prompt")
    detail: Any = woke["detail"]
    assert (woke["woke"], detail["exit_code"]) == ("prompt", None if shell == "/bin/dash" else 9)
    assert again["woke"] == "prompt", "it is there already"


async def test_a_port_is_open_when_something_listens_and_its_holder_is_told(
    home: Path, caller: Caller
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
        async with terminal_tools(home, caller) as at:
            terminal = await at.open()
            elsewhere = await wait(at, terminal, "port", port)
            found.close()
            program = f"sleep 0.3; exec python3 -m http.server --bind 127.0.0.1 {port}"
            await send(at, terminal, f"sh -c '{program}'")
            woke = await wait(at, terminal, "port", str(port))
    assert elsewhere["detail"] == {"port": port, "pid": None}
    detail: Any = woke["detail"]
    assert woke["woke"] == "port"
    assert detail["pid"] not in (None, terminal.pid)


async def test_a_file_counts_when_it_is_new_since_the_last_input_or_changes(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.run(terminal, "touch -d '1 hour ago' old")
        await send(at, terminal, "sleep 0.3; echo new > made; sleep 0.3; echo more >> old")
        made = await wait(at, terminal, "file", "made")
        again = await wait(at, terminal, "file", "made")
        old = await wait(at, terminal, "file", "old")
    assert (made["woke"], made["detail"]) == ("file", {"path": f"{root}/made", "existed": False, "bytes": 4})
    assert again["woke"] == "file", "made since the last input, so that a wait that comes late does not hang"
    assert (old["woke"], old["detail"]) == ("file", {"path": f"{root}/old", "existed": True, "bytes": 5})


async def test_a_file_elsewhere_asks(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        at.person.cancel()
        call = await at.waiting(
            "wait_for_terminal", terminalId=terminal.id, until="file", value="/etc/passwd"
        )
        assert call.approval is not None
        assert call.approval.asked.reasons[0] == "reads outside the workspace"


async def test_when_the_time_is_up_that_is_why_and_the_output_so_far_is_there(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/sh", shellArgs=["-c", "echo begun; sleep 100"])
        await wait(at, terminal, "pattern", "begun\n")
        woke = await wait(at, terminal, "pattern", "never", timeout_seconds=0.3)
        after = await wait(at, terminal, "pattern", "begun", timeout_seconds=0.3, after=woke["next"])
    assert (woke["woke"], woke["output"], woke["running"]) == ("timeout", "begun\n", True)
    assert (after["woke"], after["output"]) == ("timeout", "")


async def test_a_wait_ends_with_its_terminal_whatever_it_is_for(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/sleep", shellArgs=["1000"])
        woke: list[Json] = []

        async def waits(until: str, value: Any) -> None:
            woke.append(await wait(at, terminal, until, value))

        async with anyio.create_task_group() as group:
            for until, value in (
                ("pattern", "x"),
                ("idle", 3600),
                ("port", 1),
                ("file", "none"),
                ("exit", None),
            ):
                group.start_soon(waits, until, value)
            await anyio.wait_all_tasks_blocked()
            await at.data("close_terminal", terminalId=terminal.id)
    assert [item["woke"] for item in woke] == ["exit"] * 5


async def test_a_question_ends_a_wait_once(home: Path, caller: Caller) -> None:
    script = "read -p 'Name? ' name; read -p 'Age? ' age; echo $name is $age; sleep 100"
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/bash", shellArgs=["-c", script])
        first = await wait(at, terminal, "pattern", "is 3")
        same = await wait(at, terminal, "pattern", "is 3", timeout_seconds=0.5)
        await send(at, terminal, "Ada")
        second = await wait(at, terminal, "pattern", "is 3")
        await send(at, terminal, "36")
        third = await wait(at, terminal, "pattern", "is 3")
    asked: Any = first["waiting_for_input"]
    assert (first["woke"], asked["prompt"], asked["sure"], asked["secret"]) == (
        "waiting_for_input",
        "Name?",
        "certain",
        False,
    )
    assert "send_to_terminal" in asked["advice"]
    assert (same["woke"], same["waiting_for_input"] is not None) == ("timeout", True)
    again: Any = second["waiting_for_input"]
    assert (second["woke"], again["prompt"]) == ("waiting_for_input", "Age?")
    assert third["woke"] == "pattern"


async def test_an_agent_waits_for_a_secret_that_a_person_types(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(
            shellPath="/bin/bash", shellArgs=["-c", "read -rsp 'Password: ' x; echo; echo ok"]
        )
        woke = await wait(at, terminal, "exit")
        await terminal.type(b"secret\r", InputSender(person=True, name="a person"))
        done = await wait(at, terminal, "exit")
    asked: Any = woke["waiting_for_input"]
    assert (woke["woke"], asked["secret"]) == ("waiting_for_input", True)
    assert "only a person may type" in asked["advice"]
    assert done["woke"] == "exit"


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"terminalId": "tnone", "until": "exit"}, "There is no terminal tnone"),
        ({"until": "pattern"}, "`value` is needed: a regular expression"),
        ({"until": "pattern", "value": "("}, "is not a regular expression"),
        ({"until": "port", "value": "http"}, "the port's number, from 1 to 65535"),
        ({"until": "pattern", "value": "a\0b"}, "cannot be matched"),
        ({"until": "port", "value": "1e3"}, "the port's number, from 1 to 65535"),
        ({"until": "port", "value": 70_000}, "the port's number, from 1 to 65535"),
        ({"until": "idle", "value": 0}, "a number from 0.1 to 3600"),
        ({"until": "file"}, "`value` is needed: the path of a file"),
        ({"until": "noon"}, "`until`"),
    ],
)
async def test_a_bad_wish_gets_a_sentence(
    home: Path, caller: Caller, input: dict[str, Any], words: str
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/cat")
        assert words in await at.refusal("wait_for_terminal", **{"terminalId": terminal.id, **input})
