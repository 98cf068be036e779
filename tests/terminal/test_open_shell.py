"""Opening a terminal that stays: the shell that is chosen, what it gets, and the sentence for what cannot be."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, KeeperTerminals, all_output, running_keeper

from handrail.store.values import Owner
from handrail.terminal.open_shell import OpenRefused, default_shell, folder, open_shell, resolve_program
from handrail.terminal.terminal import Terminal, TerminalNote

pytestmark = pytest.mark.anyio

OWNER = Owner(person=True, name="me")


async def opened(scene: KeeperTerminals, shell: str, *args: str, **more: Any) -> Terminal:
    usual: dict[str, Any] = {"cwd": "/", "env": ENV, "of": "tracked", "owner": OWNER}
    usual |= {"max_bytes": 1 << 20, "max_lines": 10_000, "grace": 0.2}
    return await open_shell(scene.terminals, shell=shell, args=args, **{**usual, **more})


def test_the_shell_is_the_configured_one_else_the_persons() -> None:
    assert default_shell("/bin/fish", {"SHELL": "/bin/zsh"}) == "/bin/fish"
    assert default_shell(None, {"SHELL": "/bin/zsh"}) == "/bin/zsh"
    assert default_shell(None, {}).startswith("/")


def test_a_program_is_found_by_path_or_by_name(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert resolve_program(str(tool), {"PATH": "/nowhere"}) == str(tool)
    assert resolve_program("tool", {"PATH": f"/nowhere:{tmp_path}"}) == str(tool)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/no/such/shell", "There is no file /no/such/shell"),
        ("no-such-shell", "no program no-such-shell on the PATH"),
        ("bin/sh", "relative path"),
        ("/etc", "There is no file /etc"),
        ("/etc/passwd", "not executable"),
    ],
)
def test_a_bad_shell_is_answered_with_those_that_there_are(name: str, words: str) -> None:
    with pytest.raises(OpenRefused, match=words) as refused:
        resolve_program(name, os.environ)
    offered = str(refused.value).partition("Shells on this machine: ")[2].rstrip(".").split(", ")
    assert offered
    assert all(os.access(path, os.X_OK) for path in offered)


@pytest.mark.parametrize("cwd", ["relative", "", "/no/such", "/etc/passwd"])
def test_a_place_that_is_no_folder_is_refused(cwd: str) -> None:
    with pytest.raises(OpenRefused):
        folder(cwd)


async def test_a_program_gets_its_environment_its_size_and_its_own_id(home: Path, tmp_path: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await opened(
            scene, "sh", "-c", "pwd; stty size; echo $HANDRAIL_TERMINAL $EXTRA", cwd=str(tmp_path),
            env={**ENV, "EXTRA": "given"}, size=(77, 33),
        )  # fmt: skip
        words = (await all_output(terminal)).decode().split()
    assert words == [str(tmp_path), "33", "77", terminal.id, "given"]


async def test_the_note_says_what_it_is_and_whose(home: Path) -> None:
    async with running_keeper(home) as scene:
        plain = await opened(scene, "sleep", "1000")
        named = await opened(scene, "sleep", "1000", name="the watcher", of="shell", call="c1", id="tmine")
        for terminal in (plain, named):
            await terminal.stop(0.0)
    assert plain.note == TerminalNote(of="tracked", name="sleep", owner=OWNER)
    assert named.note == TerminalNote(of="shell", name="the watcher", owner=OWNER, call="c1")
    assert named.id == "tmine"


async def test_an_interactive_shell_marks_its_prompts_with_its_own_nonce(home: Path) -> None:
    async with running_keeper(home) as scene:
        one, other = await opened(scene, "bash"), await opened(scene, "bash")
        with anyio.fail_after(BOUND):
            for terminal in (one, other):
                while terminal.note.nonce.encode() not in terminal.tail.read(0)[0]:  # noqa: ASYNC110 - output rings no bell for a condition
                    await anyio.sleep(0.01)
        for terminal in (one, other):
            await terminal.stop(0.0)
    assert len(one.note.nonce) >= 16
    assert one.note.nonce != other.note.nonce


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"size": (0, 24)}, "between 1 and 1000"),
        ({"size": (80, 100_000)}, "between 1 and 1000"),
        ({"env": {"A=B": "1"}}, "name of a variable"),
        ({"env": {"": "1"}}, "name of a variable"),
        ({"env": {"A": "1\0"}}, "NUL"),
        ({"cwd": "/no/such"}, "There is no folder"),
    ],
)
async def test_what_cannot_be_starts_nothing(home: Path, more: dict[str, Any], words: str) -> None:
    async with running_keeper(home) as scene:
        with pytest.raises(OpenRefused, match=words):
            await opened(scene, "/bin/sh", **more)
        assert not scene.terminals.known
