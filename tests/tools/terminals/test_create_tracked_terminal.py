"""create_tracked_terminal with the real keeper: what is opened, what is refused, and what a person is shown first."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.tool_runner import terminal_tools
from tests.tools.commands.test_execute_command import swap

from handrail.store.values import Caller, CommandPreview, Owner

pytestmark = pytest.mark.anyio


async def test_a_terminal_tells_its_shell_its_place_and_how_to_use_it(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller) as at:
        result = await at.result("create_tracked_terminal", cols=100, rows=30)
        data, terminal = result.data, at.terminals.get(str(result.data["terminal_id"]))
    assert terminal is not None
    assert data == {
        "terminal_id": terminal.id,
        "terminalId": terminal.id,
        "id": terminal.id,
        "name": "bash 1",
        "shell": "/bin/bash",
        "pid": terminal.pid,
        "cwd": str(root),
        "size": [100, 30],
        "marks": True,
    }
    assert (terminal.note.of, terminal.note.owner) == (
        "tracked",
        Owner(person=False, name="test", workspace=str(root)),
    )
    assert f'execute_command and terminal_id "{terminal.id}"' in result.text


async def test_another_program_can_be_opened_with_its_arguments_place_and_variables(
    home: Path, root: Path, caller: Caller
) -> None:
    (root / "below").mkdir()
    async with terminal_tools(home, caller) as at:
        data = await at.data(
            "create_tracked_terminal",
            name="a cat",
            shellPath="/bin/sh",
            shellArgs=["-c", 'echo "$1 in $PWD with $ADDED, pager $PAGER"', "sh", "here"],
            cwd="below",
            env={"ADDED": "more"},
        )
        woke = await at.data("wait_for_terminal", terminalId=data["terminal_id"], until="exit")
    assert (data["name"], data["marks"]) == ("a cat", False)
    assert woke["output"] == f"here in {root}/below with more, pager cat\n"


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"shellPath": "/no/such/shell"}, "There is no file /no/such/shell. Shells on this machine: /bin/"),
        ({"shellPath": "nosuchshell"}, "There is no program nosuchshell on the PATH. Shells on this machine"),
        ({"shellPath": "/etc/passwd"}, "not executable"),
        ({"cwd": "nowhere"}, "There is no nowhere"),
        ({"env": {"A": "b\0"}}, "NUL character"),
        ({"cols": 0}, "`cols`"),
        ({"shell": "zsh"}, "`shell` is not an input of this tool"),
    ],
)
async def test_what_cannot_be_opened_gets_a_sentence_that_says_what_to_do(
    home: Path, caller: Caller, input: dict[str, Any], words: str
) -> None:
    async with terminal_tools(home, caller) as at:
        assert words in await at.refusal("create_tracked_terminal", **input)
        assert not at.terminals.known


async def test_a_person_is_shown_what_would_be_opened_and_an_answer_holds_for_that_alone(
    home: Path, root: Path, caller: Caller
) -> None:
    async with terminal_tools(home, caller, default="ask") as at:
        call = await at.waiting("create_tracked_terminal", shellArgs=["--norc"], env={"A": "b"})
        assert call.approval is not None
        asked = call.approval.asked
        assert asked.preview == CommandPreview(
            command="/bin/bash --norc", cwd=str(root), program="/bin/bash", environment=("A",)
        )
        assert [(item.action, item.opaque) for item in asked.claims] == [
            ("run", ""),
            ("run", "sets variables for it: A"),
        ]
        assert asked.risk == "high"
        swap(root)
        outcome = await at.allow(call)
        assert "no longer what would run" in outcome.message
        assert not at.terminals.known


async def test_a_program_of_the_workspace_is_no_plain_shell_and_an_answer_is_about_that_very_file(
    home: Path, root: Path, caller: Caller
) -> None:
    program = root / "bash"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    async with terminal_tools(home, caller, default="ask") as at:
        call = await at.waiting("create_tracked_terminal", shellPath=str(program))
        assert call.approval is not None
        assert all(item.opaque for item in call.approval.asked.claims)
        program.write_text("#!/bin/sh\ntouch it-ran\n")
        outcome = await at.allow(call)
        assert "no longer what would run" in outcome.message
        assert not at.terminals.known
