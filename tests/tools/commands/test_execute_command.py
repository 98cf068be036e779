"""execute_command with the real keeper: what runs, what is told, and what is left behind."""

import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.keeper_terminals import running_keeper
from tests.support.tool_runner import BOUND, allow_all, build_tool_context, result_of

from handrail.gate import person_actions
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Refusal
from handrail.store.actor import PERSON
from handrail.store.events import CallStopped
from handrail.store.journal import open_journal
from handrail.store.records import open_records
from handrail.store.values import Caller, CommandPreview, Json
from handrail.terminal.terminals import Terminals
from handrail.tools.commands.command_input import COMPLETED, ExecuteCommandInput
from handrail.tools.commands.command_output import check
from handrail.tools.commands.execute_command import CommandPlan, ExecuteCommand
from handrail.tools.tool_context import child_environment


@dataclass
class Shell:
    """The command tool, and a person who allows everything."""

    gate: Gate
    caller: Caller
    tool: ExecuteCommand
    terminals: Terminals

    async def submit(self, patience: float = BOUND, **input: Any) -> Reply:
        request = Request(tool="execute_command", input=input, caller=self.caller, patience=patience)
        with anyio.fail_after(BOUND):
            return await self.gate.submit(request)

    async def outcome(self, **input: Any) -> Outcome:
        reply = await self.submit(**input)
        assert reply.outcome is not None
        return reply.outcome

    async def data(self, **input: Any) -> Json:
        return result_of(await self.outcome(**input)).data

    async def stopped(self, call: Call) -> None:
        """Return when its work has really ended."""

        async def look(entries: Any) -> None:
            if any(isinstance(entry.event, CallStopped) and entry.event.call == call.id for entry in entries):
                scope.cancel()

        with anyio.fail_after(BOUND), anyio.CancelScope() as scope:
            await self.gate.journal.follow(0, look)


@asynccontextmanager
async def shell(home: Path, caller: Caller, grace: float = 0.2) -> AsyncGenerator[Shell]:
    async with (
        running_keeper(home) as scene,
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        open_records(home / "handrail.db") as records,
        anyio.create_task_group() as group,
    ):
        tool = ExecuteCommand(build_tool_context(scene.terminals, records, home, grace))
        rules = Rules.with_default(journal, "allow", trusted=[caller.workspace or "/"])
        gate = Gate(journal, rules, {tool.name: tool}, group)
        group.start_soon(allow_all, gate)
        yield Shell(gate, caller, tool, scene.terminals)
        group.cancel_scope.cancel()


async def test_a_command_tells_its_output_its_exit_code_and_where_it_ran(
    home: Path, root: Path, caller: Caller
) -> None:
    async with shell(home, caller) as sh:
        data = await sh.data(command="echo one; echo two >&2; exit 3")
    assert (data["output"], data["exit_code"], data["cwd"]) == ("one\ntwo\n", 3, str(root))
    assert (data["output_captured"], data["output_bytes"]) == (True, 10)
    assert isinstance(data["duration_ms"], int)


async def test_a_command_that_prints_nothing_says_so(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        data = await sh.data(command="true")
    assert (data["output"], data["output_captured"], data["exit_code"]) == ("[No output captured]", False, 0)


async def test_a_signal_that_ended_it_is_named(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        data = await sh.data(command="kill -SEGV $$")
    assert (data["exit_code"], data["signal"]) == (None, "SIGSEGV")


async def test_children_get_no_more_than_the_environment_they_are_given(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        data = await sh.data(command="env | sort", env={"ADDED": "by the call"})
    names = {line.partition("=")[0] for line in str(data["output"]).splitlines()}
    assert "ADDED" in names
    assert names <= {
        "ADDED",
        "HANDRAIL_TERMINAL",
        "PATH",
        "HOME",
        "LANG",
        "PAGER",
        "GIT_PAGER",
        "TERM",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    }


def test_the_daemons_environment_is_passed_on_by_name_alone() -> None:
    environ = {"PATH": "/bin", "LC_ALL": "C", "API_KEY": "secret", "FOO_A": "1", "FOO_B": "2"}
    assert child_environment(environ, ()) == {"PATH": "/bin", "LC_ALL": "C", **GIT}
    assert child_environment(environ, ("FOO_*",)) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "FOO_A": "1",
        "FOO_B": "2",
        **GIT,
    }


GIT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}


def test_gits_settings_of_a_person_are_kept_and_win() -> None:
    other = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ann"}
    composed = child_environment(other, ("GIT_CONFIG_*",))
    assert composed == {
        **other,
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_1": "safe.bareRepository",
        "GIT_CONFIG_VALUE_1": "explicit",
    }
    own = {**GIT, "GIT_CONFIG_KEY_0": "safe.barerepository", "GIT_CONFIG_VALUE_0": "all"}
    assert child_environment(own, ("GIT_CONFIG_*",)) == own


def test_git_runs_nothing_of_a_repository_that_it_merely_comes_across(tmp_path: Path) -> None:
    bare, ran = tmp_path / "bare", tmp_path / "ran"
    (bare / "objects").mkdir(parents=True)
    (bare / "refs").mkdir()
    (bare / "HEAD").write_text("ref: refs/heads/x\n")
    (bare / "config").write_text(f'[alias]\n\tshow-it = "!touch {ran}"\n')
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    safe = child_environment(plain, ())
    for env, happens in ((safe, False), (plain, True)):
        subprocess.run(["git", "show-it"], cwd=bare, env=env, capture_output=True, timeout=30, check=False)
        assert ran.exists() is happens


async def test_a_command_out_of_time_is_stopped_and_its_output_kept(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        outcome = await sh.outcome(command="echo begun; sleep 1000", timeout_seconds=0.3)
    assert outcome.ending == "failed"
    assert "ran out of time after 0.3 s" in outcome.message
    assert outcome.result is not None
    assert outcome.result.data["output"] == "begun\n"


async def test_in_the_background_it_is_handed_back_as_soon_as_it_runs(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        reply = await sh.submit(command="echo up; sleep 1000", background=True)
        assert (reply.outcome, reply.call.status, reply.call.handed_back) == (None, "running", True)
        assert reply.call.terminal is not None
        assert person_actions.cancel(sh.gate, reply.call, PERSON)
        await sh.stopped(reply.call)
    assert reply.call.receipt.stopped
    assert not reply.call.receipt.processes_left


async def test_what_it_leaves_behind_is_ended_while_the_client_has_its_result(
    home: Path, caller: Caller
) -> None:
    async with shell(home, caller, grace=5.0) as sh:
        left = "trap '' HUP TERM; while :; do sleep 0.05; done"
        reply = await sh.submit(command=f'(setsid bash -c "{left}" &); sleep 0.1; echo done')
        assert reply.outcome is not None
        assert reply.outcome.ending == "done"
        assert not reply.call.receipt.stopped, "the client did not wait for the grace"
        await sh.stopped(reply.call)
    receipt = reply.call.receipt
    assert "bash" in [item.name for item in receipt.processes_stopped]
    assert "SIGKILL" in [item.signal for item in receipt.signals]


async def test_a_cancel_after_its_exit_waits_for_the_end_of_what_it_left_behind(
    home: Path, caller: Caller
) -> None:
    async with shell(home, caller) as sh:
        stubborn = "(trap '' HUP TERM; touch ready; exec sleep 31) & until [ -e ready ]; do :; done"
        call = (await sh.submit(command=stubborn, background=True)).call
        terminal = sh.terminals.get(call.terminal or "")
        assert terminal is not None
        with anyio.fail_after(BOUND):
            await terminal.wait()
        assert not person_actions.cancel(sh.gate, call, PERSON), "the command had ended"
        assert call.outcome is not None
        assert call.outcome.ending == "done"
        assert terminal.swept is None
        await sh.stopped(call)
        assert terminal.swept is not None
        assert (bool(call.receipt.processes_stopped), call.receipt.processes_left) == (True, ())
        assert sh.terminals.get(terminal.id) is None


async def test_complete_returns_the_output_so_far_and_lets_it_run_on(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        reply = await sh.submit(patience=0.5, command="echo begun; sleep 1000")
        call = reply.call
        chosen = person_actions.completion(sh.gate, call)
        assert (chosen.does, chosen.tells, chosen.runs_on) == ("return_output", COMPLETED, True)
        assert person_actions.complete(sh.gate, call, PERSON)
        assert call.outcome is not None
        assert call.outcome.result is not None
        data = call.outcome.result.data
        assert (data["exit_code"], data["output"], data["output_captured"]) == (None, "begun\n", True)
        assert not call.receipt.stopped


async def test_only_matching_lines_are_shown_with_their_numbers(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        data = await sh.data(command="seq 1 3000; echo the error is here", output_grep="error|^7$")
    assert data["output"] == "7: 7\n3001: the error is here\n"


async def test_no_match_is_said(home: Path, caller: Caller) -> None:
    async with shell(home, caller) as sh:
        data = await sh.data(command="echo fine", output_grep="error")
    assert data["output"] == "[no line matches]\n"


def test_a_pattern_that_is_none_is_refused_before_anything_runs() -> None:
    with pytest.raises(Refusal, match=r"is not a regular expression.* Nothing was run"):
        check("(unclosed")


def test_look_around_in_output_grep_is_refused_before_anything_runs() -> None:
    with pytest.raises(Refusal, match=r"look-around and backreferences are not supported.* Nothing was run"):
        check("a(?=b)")


async def test_a_catastrophic_pattern_finds_its_lines_in_a_megabyte(home: Path, caller: Caller) -> None:
    line = "head -c 1000000 /dev/zero | tr '\\0' a; echo b; echo aaa"
    async with shell(home, caller) as sh:
        data = await sh.data(command=line, output_grep="^(a+)+$")
    assert data["output"] == "2: aaa\n"


def swap(folder: Path) -> None:
    """Another folder where this one was."""
    folder.rename(folder.with_name("moved"))
    folder.mkdir()


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"command": "  "}, "The command is empty"),
        ({"command": "echo \0"}, "NUL character"),
        ({"command": "x" * 100_001}, "100,001 bytes, and 100,000 are possible"),
        ({"command": "true", "env": {"A=B": "c"}}, "a name holds `=`"),
        ({"command": "true", "cwd": "nowhere"}, "There is no nowhere"),
        ({"command": "true", "cwd": "file"}, "not a directory"),
        ({"command": "true", "output_grep": "["}, "Nothing was run"),
        ({"command": "true", "timeout_seconds": 0}, "timeout_seconds"),
        ({"command": "true", "shell": "zsh"}, "`shell` is not an input of this tool"),
        ({}, "`command` is required"),
    ],
)
async def test_bad_input_gets_a_sentence_and_nothing_runs(
    home: Path, root: Path, caller: Caller, input: dict[str, Any], words: str
) -> None:
    (root / "file").touch()
    async with shell(home, caller) as sh:
        outcome = await sh.outcome(**input)
    assert outcome.ending == "failed"
    assert words in outcome.message


async def test_the_preview_and_the_digest_hold_all_that_decides_what_runs(
    home: Path, root: Path, caller: Caller
) -> None:
    async with shell(home, caller) as sh:
        plain = await sh.tool.plan(ExecuteCommandInput(command="make"), caller)
        added = await sh.tool.plan(ExecuteCommandInput(command="make", env={"CC": "evil"}), caller)
        before = plain.bound
        swap(root)
        replaced = await sh.tool.plan(ExecuteCommandInput(command="make"), caller)
    assert isinstance(plain.preview, CommandPreview)
    assert (plain.preview.command, plain.preview.cwd) == ("make", str(root))
    assert isinstance(added.preview, CommandPreview)
    assert added.preview.environment == ("CC",)
    assert added.bound != before
    assert replaced.bound != before
    assert isinstance(plain, CommandPlan)
    assert plain.argv == (plain.preview.program, "-c", "--", "make")


async def test_lines_are_matched_as_they_stand_each_apart_from_the_others(home: Path, caller: Caller) -> None:
    printed = (
        r"\033[31mred\033[0m one\n10%%\r100%%\nlow\033[A up\n\033]0;a title\007two\ncut \033[3\nred two\n"
    )
    async with shell(home, caller) as sh:
        data = await sh.data(command=f"printf '{printed}'", output_grep="^red|^100%$|^low up$|^two$|^cut $")
    assert data["output"] == "1: red one\n2: 100%\n3: low up\n4: two\n5: cut \n6: red two\n"


async def test_git_writes_no_index_in_a_line_that_only_reads(home: Path, root: Path, caller: Caller) -> None:
    for words in (
        "init -q",
        "add .",
        "-c user.name=a -c user.email=a@example.org commit -qm x --allow-empty",
    ):
        (root / "file.txt").touch()
        await anyio.run_process(["git", *words.split()], cwd=root)
    index = (root / ".git" / "index").read_bytes()
    async with shell(home, caller) as at:
        for line in ("git status", "git diff", "git diff HEAD"):
            (root / "file.txt").touch()
            assert (await at.data(command=line))["exit_code"] == 0
            assert (root / ".git" / "index").read_bytes() == index, line
