"""get_terminal_buffer: nothing missed, nothing told twice, and nothing made up."""

import base64
import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import BOUND, TerminalToolRunner, terminal_tools

from handrail.store.events import TerminalForgotten
from handrail.store.values import Caller, Json, Owner
from handrail.terminal.terminal import Terminal, TerminalNote
from handrail.tools.terminals.terminal_lookup import of_terminal

pytestmark = pytest.mark.anyio


async def prints(at: TerminalToolRunner, program: str, **input: Any) -> Terminal:
    """A terminal that a program has printed into, and left."""
    terminal = await at.open(shellPath=sys.executable, shellArgs=["-c", program], **input)
    with anyio.fail_after(BOUND):
        await terminal.wait()
    return terminal


def exact(data: Json) -> bytes:
    if "output_base64" in data:
        return base64.b64decode(str(data["output_base64"]))
    return str(data["output"]).encode()


async def follow(at: TerminalToolRunner, terminal: Terminal, **input: Any) -> tuple[bytes, int]:
    """All of a raw output, read by cursor while it comes; and in how many readings."""
    found, after, count = b"", 0, 0
    with anyio.fail_after(BOUND * 2):
        while True:
            data = await at.data(
                "get_terminal_buffer", terminalId=terminal.id, after=after, mode="raw", **input
            )
            piece, count = exact(data), count + 1
            assert data["next"] == after + len(piece)
            found, after = found + piece, int(str(data["next"]))
            if not data["running"] and data["next"] == data["end"]:
                return found, count


PRODUCER = """
import hashlib, os, random, sys, termios
attributes = termios.tcgetattr(1); attributes[1] &= ~termios.OPOST; termios.tcsetattr(1, 0, attributes)
chance, sum = random.Random(1), hashlib.sha256()
for _ in range(400):
    piece = {}
    sum.update(piece); os.write(1, piece)
open("sum", "w").write(sum.hexdigest())
"""


@pytest.mark.parametrize(
    "piece", ['("Grüße, 世界 🎉 " * chance.randrange(60)).encode()', "chance.randbytes(1000)"]
)
async def test_readings_by_cursor_during_output_join_to_exactly_what_was_written(
    home: Path, root: Path, caller: Caller, piece: str
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath=sys.executable, shellArgs=["-c", PRODUCER.format(piece)])
        found, count = await follow(at, terminal)
    assert hashlib.sha256(found).hexdigest() == (root / "sum").read_text()
    assert count > 5


async def test_text_resolves_colours_and_progress_bars(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, r"print('\033[31mred\033[0m'); print('10%\r50%\r100% done')")
        result = await at.result("get_terminal_buffer", terminalId=terminal.id)
    assert result.data["output"] == "red\n100% done\n"
    assert result.text.startswith("red\n100% done\n")
    assert (result.data["running"], result.data["exit_code"]) == (False, 0)


async def test_the_last_lines_and_the_last_chunks_as_they_were_written(home: Path, caller: Caller) -> None:
    program = "import os, time\nfor n in range(6): os.write(1, b'%d\\n' % n); time.sleep(0.05)"
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, program)
        lines = await at.data("get_terminal_buffer", terminalId=terminal.id, lines=2)
        chunks = await at.data("get_terminal_buffer", terminalId=terminal.id, lastN=3)
        listed = await at.data("get_terminal_buffer", terminalId=terminal.id, lastN=3, asString=False)
    assert lines["output"] == "4\n5\n"
    assert chunks["output"] == "3\n4\n5\n"
    told: Any = listed["chunks"]
    assert [item["text"] for item in told] == ["3\n", "4\n", "5\n"]
    assert [item["offset"] for item in told] == [9, 12, 15]
    times = [item["at"] for item in told]
    assert times == sorted(times)
    assert "output" not in listed


async def test_the_screen_is_what_a_person_would_see(home: Path, caller: Caller) -> None:
    program = r"print('\033[2J\033[3;5Hhere', end='', flush=True)"
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, program, cols=40, rows=10)
        data = await at.data("get_terminal_buffer", terminalId=terminal.id, mode="screen")
    assert data["output"] == "\n\n    here"
    assert (data["cursor"], data["size"], data["alternate_screen"]) == ([8, 2], [40, 10], False)


async def test_what_is_dropped_and_what_is_left_out_is_said(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:  # which keeps one megabyte
        terminal = await prints(at, "for n in range(300000): print(n)")
        data = await at.data("get_terminal_buffer", terminalId=terminal.id, after=0)
        last = await at.data("get_terminal_buffer", terminalId=terminal.id, lines=10_000)
    dropped = int(str(data["dropped_bytes"]))
    assert dropped > 0
    assert (data["start"], data["left_out"]) == (dropped, dropped)
    assert int(str(data["dropped_lines"])) > 0
    assert int(str(data["next"])) < int(str(data["end"]))
    assert str(last["output"]).endswith("299999\n")
    assert int(str(last["left_out"])) > 0


async def test_the_nonce_of_the_shells_marks_is_not_shown_however_it_is_cut(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.run(terminal, "echo hello")
        nonce = terminal.note.nonce.encode()
        whole = terminal.tail.read(0, 1 << 20)[0]
        at_nonce = whole.index(nonce)
        for after in (0, at_nonce, at_nonce + 1, at_nonce + len(nonce) - 4):
            for mode in ("raw", "text"):
                data = await at.data("get_terminal_buffer", terminalId=terminal.id, after=after, mode=mode)
                shown = str(data["output"]).encode()
                assert nonce not in shown
                assert nonce[-4:] not in shown[: len(nonce)]
            assert "hello" in str(data["output"])


async def test_the_nonce_is_not_shown_where_a_program_prints_it(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        line = "declare -p __handrail_nonce; printf '\\033]0;%s\\007' $__handrail_nonce"
        told: list[Any] = [await at.run(terminal, line)]
        for how in ({"mode": "text"}, {"mode": "raw"}, {"mode": "screen"}, {"asString": False}):
            told += [await at.data("get_terminal_buffer", terminalId=terminal.id, **how)]
        told += [await at.data("search_terminal_buffer", terminalId=terminal.id, pattern="nonce=")]
        pattern = {"until": "pattern", "value": "nonce=.*", "after": 0}
        told += [await at.data("wait_for_terminal", terminalId=terminal.id, **pattern)]
        nonce = terminal.note.nonce
        assert nonce.encode() in terminal.tail.read(0, 1 << 20)[0]
    assert [data for data in told if nonce in str(data)] == []
    assert all("__handrail_nonce" in str(data) for data in told)


async def test_a_terminal_that_ended_before_a_restart_is_still_readable(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, "print('kept'); raise SystemExit(4)")
    async with terminal_tools(home, caller) as at:
        assert at.terminals.get(terminal.id) is None
        data = await at.data("get_terminal_buffer", terminalId=terminal.id, includeMetadata=True)
        found = await at.data("search_terminal_buffer", terminalId=terminal.id, pattern="k.pt")
    facts: Any = data["terminal"]
    assert (data["output"], data["running"], data["exit_code"]) == ("kept\n", False, 4)
    assert (facts["name"], facts["owner"]["name"], facts["running"]) == (
        f"{Path(sys.executable).name} 1",
        "test",
        False,
    )
    matches: Any = found["matches"]
    assert matches == [{"line_number": 1, "offset": 0, "text": "kept", "before": [], "after": []}]


async def test_output_that_was_deleted_is_said_to_be(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, "print('gone')")
        with anyio.fail_after(BOUND):
            await terminal.wait_swept()
        await at.terminals.forget(terminal.id, delete=True)
        journal = at.gate.journal
        await journal.committed(journal.append(TerminalForgotten(terminal=terminal.id, why="age")))
        result = await at.result("get_terminal_buffer", terminalId=terminal.id)
        sentence = await at.refusal("search_terminal_buffer", terminalId=terminal.id, pattern="x")
    assert result.data["forgotten"] is True
    assert "was deleted, as configured" in result.text
    assert "was deleted" in sentence


async def test_an_ended_command_reads_the_same_at_hand_and_from_the_record(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        ran = await at.data("execute_command", command="echo one; sh -c 'exit 3'", wait_seconds=BOUND)
        terminal = str(ran["terminal_id"])
        assert at.terminals.get(terminal) is None
        assert at.terminals.left(terminal) is not None
        asked: Json = {"terminalId": terminal, "after": 0}
        at_hand = await at.data("get_terminal_buffer", **asked)
        at.terminals.deleted(terminal)
        recorded = await at.data("get_terminal_buffer", **asked)
    assert at_hand == recorded
    assert (at_hand["output"], at_hand["exit_code"], at_hand["running"]) == ("one\n", 3, False)


async def test_what_was_typed_under_a_daemon_before_is_looked_up(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open(shellPath="/bin/cat")
        assert of_terminal(terminal).typed_to == -1
        assert of_terminal(replace(terminal, adopted=True)).typed_to is None
        await at.data("send_to_terminal", terminalId=terminal.id, text="hello")
        assert of_terminal(terminal).typed_to == terminal.last_input == 0


async def test_reading_what_belongs_to_another_workspace_asks(home: Path, root: Path, caller: Caller) -> None:
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    async with terminal_tools(home, caller) as at:
        other = replace(at, caller=replace(caller, key="other", workspace=str(elsewhere)))
        theirs = await other.open(shellPath="/bin/cat")
        at.person.cancel()
        call = await at.waiting("get_terminal_buffer", terminalId=theirs.id)
        assert call.approval is not None
        assert call.approval.asked.reasons == ("reads outside the workspace",)
        note = TerminalNote(of="shell", name="sh", owner=Owner(person=True, name="a person"))
        here = await at.terminals.open(["/bin/cat"], str(root), {"PATH": "/bin"}, note=note)
        await at.data("get_terminal_buffer", terminalId=here.id)


async def test_a_persons_shell_that_has_left_the_workspace_is_theirs_again_at_once(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        note = TerminalNote(of="shell", name="sh", owner=Owner(person=True, name="a person"))
        script = (
            "read go; cd /; while echo private; do sleep 0.02; done"  # never quiet enough to be looked at
        )
        shell = await at.terminals.open(["/bin/sh", "-c", script], str(root), {"PATH": "/bin"}, note=note)
        await at.data("get_terminal_buffer", terminalId=shell.id)
        await shell.write(b"\r")
        at.person.cancel()
        with anyio.fail_after(BOUND):
            while b"private" not in shell.tail.read(0)[0]:  # noqa: ASYNC110 - nothing rings for this
                await anyio.sleep(0.01)
        for tool, more in (("get_terminal_buffer", {}), ("search_terminal_buffer", {"pattern": "private"})):
            call = await at.waiting(tool, terminalId=shell.id, **more)
            assert call.approval is not None


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"terminalId": "tnone"}, "There is no terminal tnone. list_tracked_terminals names"),
        ({"after": 0, "lines": 3}, "Give one of them"),
        ({"mode": "html"}, "`mode`"),
        ({"after": -1}, "`after`"),
    ],
)
async def test_a_bad_question_gets_a_sentence(
    home: Path, caller: Caller, input: dict[str, Any], words: str
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, "print('x')")
        assert words in await at.refusal("get_terminal_buffer", **{"terminalId": terminal.id, **input})


async def test_a_search_finds_lines_with_their_numbers_offsets_and_neighbours(
    home: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await prints(at, "for n in range(2000): print('line', n)")
        data = await at.data(
            "search_terminal_buffer",
            terminalId=terminal.id,
            pattern="LINE 1.99$",
            case_insensitive=True,
            context=1,
        )
        few = await at.result("search_terminal_buffer", terminalId=terminal.id, pattern="9", max_results=2)
        none = await at.result("search_terminal_buffer", terminalId=terminal.id, pattern="nothing")
        bad = await at.refusal("search_terminal_buffer", terminalId=terminal.id, pattern="(")
        matches: Any = data["matches"]
        there = await at.data("get_terminal_buffer", terminalId=terminal.id, after=matches[0]["offset"])
    assert [item["text"] for item in matches] == [f"line 1{n}99" for n in range(10)]
    assert (matches[0]["line_number"], matches[0]["before"], matches[0]["after"]) == (
        1100,
        ["line 1098"],
        ["line 1100"],
    )
    assert str(there["output"]).startswith("line 1099\n")
    assert (few.data["more"], "and more" in few.text) == (True, True)
    assert (none.data["matches"], none.text) == ([], "No line matches.")
    assert "regular expression" in bad or "regex" in bad
