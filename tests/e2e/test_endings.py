"""Every way a call can end, as the SDK's client sees it: one schema for all of them, text and data in accord.

That each result fits its tool's schema is checked by `Agent.use` itself, with the SDK's own validator.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.daemon_home import Home, find_processes, list_names, running_daemon, until
from tests.support.mcp_client import ToolReply, agent
from tests.support.person_client import Person, person_of

IMPATIENT = "[command]\nstop_grace = 0.3\nwait_seconds = 1\n"
"""So that a call nobody answers is handed back after a second."""

TOOLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "notes.txt"},
    "list_files": {},
    "search_files": {"pattern": "*.txt"},
    "search_content": {"pattern": "line"},
    "write_file": {"path": "new.txt", "content": "new\n"},
    "edit_file": {"path": "notes.txt", "old_string": "line one", "new_string": "line 1"},
    "apply_diff": {"path": "notes.txt", "diff": "@@ -1,2 +1,2 @@\n-line one\n+line 1\n line two\n"},
    "execute_command": {"command": "echo from the command"},
    "create_tracked_terminal": {"shellPath": "/bin/cat"},
    "list_tracked_terminals": {},
    "list_calls": {},
    "get_call": {},
    "wait_for_call": {},
}
OUTSIDE: dict[str, dict[str, Any]] = {
    "read_file": {"path": "/etc/hostname"},
    "list_files": {"path": "/etc"},
    "search_files": {"pattern": "host*", "path": "/etc"},
    "search_content": {"pattern": "x", "path": "/etc"},
    "write_file": TOOLS["write_file"],
    "edit_file": TOOLS["edit_file"],
    "apply_diff": TOOLS["apply_diff"],
    "execute_command": TOOLS["execute_command"],
    "create_tracked_terminal": TOOLS["create_tracked_terminal"],
}
"""An input for each tool that can ask, about which a person is asked."""
CHANGES = {"write_file", "edit_file", "apply_diff", "execute_command", "create_tracked_terminal"}
IN_TERMINALS = {"send_to_terminal", "close_terminal"}
OF_TERMINALS = IN_TERMINALS | {"get_terminal_buffer", "wait_for_terminal", "search_terminal_buffer"}
"""Those that need a terminal to begin with, seen at work in test_terminals.py."""


@pytest.fixture(scope="module")
def home_of_all() -> Iterator[Home]:
    with running_daemon(IMPATIENT) as home:
        yield home


@pytest.fixture(scope="module")
def decider(home_of_all: Home) -> Person:
    return person_of(home_of_all)


@pytest.fixture
def workspace(workspace: Path) -> Path:
    (workspace / "notes.txt").write_text("line one\nline two\n")
    return workspace


def assert_same_facts(told: ToolReply) -> None:
    """What a model needs stands in the text too: a client may read either."""
    if told.status == "done":
        return  # the text is the tool's own, checked by its tests
    assert told.data["message"] in told.text or told.data.get("reason", "") in told.text
    if told.status not in ("failed", "denied"):
        assert told.call in told.text


async def test_every_tool_is_listed_with_its_schemas_and_honest_hints(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    async with agent(home_of_all, workspace) as client:
        listed = (await client.client.list_tools()).tools

    assert {tool.name for tool in listed} == TOOLS.keys() | OF_TERMINALS | {"approve", "get_diagnostics"}
    for tool in listed:
        if tool.name == "approve":  # its client refuses structured results: tests/e2e/test_hooks.py
            assert tool.output_schema is None
            continue
        assert tool.title
        assert tool.description
        assert tool.output_schema is not None
        assert "status" in tool.output_schema["required"]
        assert tool.annotations is not None
        changes = tool.name in CHANGES | IN_TERMINALS
        assert tool.annotations.read_only_hint is not changes
        assert tool.annotations.destructive_hint is changes


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_call_that_is_done_says_so_in_its_schema(
    home_of_all: Home, decider: Person, workspace: Path, tool: str
) -> None:
    async with agent(home_of_all, workspace) as client:
        earlier = await client.use("read_file", path="notes.txt")
        named = {"call_id": earlier.call} if tool in ("get_call", "wait_for_call") else {}
        asked = client.ask(tool, **TOOLS[tool], **named)
        if tool in CHANGES:
            await decider.allow()
        told = await asked.told()

    assert (told.status, told.is_error) == ("done", False)
    assert told.data["tool"] == tool
    assert told.data["receipt"]["stopped"] is True
    assert told.text


@pytest.mark.parametrize("tool", OUTSIDE)
async def test_a_denied_call_gives_the_persons_reason_and_does_nothing(
    home_of_all: Home, decider: Person, workspace: Path, tool: str
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask(tool, **OUTSIDE[tool])
        await decider.deny(reason="use the mirror instead")
        told = await asked.told()

    assert (told.status, told.is_error) == ("denied", True)
    assert told.data["reason"] == "use the mirror instead"
    assert "use the mirror instead" in told.text
    assert list_names(workspace) == ["notes.txt"]
    assert (workspace / "notes.txt").read_text() == "line one\nline two\n"


@pytest.mark.parametrize("tool", OUTSIDE)
async def test_a_waiting_call_that_is_cancelled_is_said_to_be_so(
    home_of_all: Home, decider: Person, workspace: Path, tool: str
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask(tool, **OUTSIDE[tool])
        question = await decider.question()
        assert (await decider.cancel(question["call_id"]))["won"]
        told = await asked.told()

    assert (told.status, told.is_error) == ("cancelled", True)
    assert told.data["message"] == "Cancelled by user"
    assert_same_facts(told)
    assert (await decider.get(f"approvals/{question['id']}"))["status"] == "withdrawn"


@pytest.mark.parametrize("tool", OUTSIDE)
async def test_a_call_nobody_answers_is_handed_back_waiting(
    home_of_all: Home, decider: Person, workspace: Path, tool: str
) -> None:
    async with agent(home_of_all, workspace) as client:
        told = await client.use(tool, **OUTSIDE[tool])
        again = await client.use(tool, **OUTSIDE[tool])
        assert (await decider.cancel(told.call))["won"]

    assert (told.status, told.is_error) == ("waiting", False)
    assert_same_facts(told)
    assert (again.call, again.status) == (told.call, "waiting"), "asked again, it is the same call"


@pytest.mark.parametrize("tool", OUTSIDE)
async def test_a_call_completed_with_a_persons_words_returns_them(
    home_of_all: Home, decider: Person, workspace: Path, tool: str
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask(tool, **OUTSIDE[tool])
        question = await decider.question()
        assert (await decider.complete(question["call_id"], text="take this instead"))["won"]
        told = await asked.told()

    assert (told.status, told.is_error) == ("force-completed", False)
    assert "take this instead" in told.text
    assert_same_facts(told)


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_diff"])
async def test_complete_on_a_waiting_write_accepts_the_diff_that_was_seen(
    home_of_all: Home, decider: Person, workspace: Path, tool: str
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask(tool, **TOOLS[tool])
        question = await decider.question()
        stale = await decider.ask("POST", f"calls/{question['call_id']}/complete", {"digest": "0" * 64})
        assert (await decider.complete(question["call_id"], digest=question["digest"]))["won"]
        told = await asked.told()

    assert stale.status_code == 409
    assert (told.status, told.is_error) == ("done", False)
    assert told.data["receipt"]["files_changed"] == [str(workspace / TOOLS[tool]["path"])]


async def test_complete_on_a_waiting_command_never_runs_it(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask("execute_command", command="touch it-ran")
        question = await decider.question("touch it-ran")
        await decider.complete(question["call_id"])
        told = await asked.told()

    assert told.status == "cancelled"
    assert not (workspace / "it-ran").exists()


async def test_a_running_command_that_is_cancelled_keeps_its_output_in_text_and_data(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask("execute_command", command="echo kept; sleep 60.1357", wait_seconds=30)
        call = await decider.allow("sleep 60.1357")
        await until(lambda: len(find_processes("60.1357")) > 0)
        await decider.has_printed(call)
        assert (await decider.cancel(call))["won"]
        told = await asked.told()
        final = (await decider.stopped(call))["receipt"]

    assert (told.status, told.is_error) == ("cancelled", True)
    assert told.data["output"] == "kept\n"
    assert told.data["output_captured"] is True
    assert told.data["receipt"]["ended_by"] == "a person on the page"
    assert "kept" in told.text
    assert_same_facts(told)
    assert final["stopped"]
    assert final["processes_left"] == []
    assert {process["name"] for process in final["processes_stopped"]} >= {"sleep"}
    assert find_processes("60.1357") == []


async def test_a_command_completed_before_it_printed_says_that_nothing_was_captured(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask("execute_command", command="sleep 60.2468", wait_seconds=30)
        call = await decider.allow("sleep 60.2468")
        await decider.has_terminal(call)
        await until(lambda: len(find_processes("60.2468")) > 0)
        assert (await decider.complete(call))["won"]
        told = await asked.told()
        runs_on = find_processes("60.2468")
        await decider.post(f"terminals/{told.data['terminal_id']}/close")

    assert (told.status, told.is_error) == ("force-completed", False)
    assert told.data["exit_code"] is None
    assert (told.data["output"], told.data["output_captured"]) == ("[No output captured]", False)
    assert told.data["cwd"] == str(workspace)
    assert told.data["message"] == "Command force-completed by user. May still be running in terminal."
    assert_same_facts(told)
    assert runs_on
    await until(lambda: not find_processes("60.2468"))


async def test_a_command_that_outlasts_its_client_is_handed_back_running_with_what_there_is(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    os.mkfifo(workspace / "gate")
    async with agent(home_of_all, workspace) as client:
        command = "echo so far; read line < gate; echo $line"
        asked = client.ask("execute_command", command=command, wait_seconds=1)
        call = await decider.allow("read line")
        told = await asked.told()
        (workspace / "gate").write_text("opened\n")
        later = await client.use("wait_for_call", call_id=call)

    assert (told.status, told.is_error, told.call) == ("running", False, call)
    assert told.data["output"] == "so far\n"
    assert told.data["exit_code"] is None
    assert "so far" in told.text
    assert_same_facts(told)
    assert later.data["call"]["status"] == "done"
    assert later.data["call"]["result"]["output"] == "so far\nopened\n"
    assert "opened" in later.text


async def test_a_command_that_runs_out_of_time_fails_with_its_output(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    async with agent(home_of_all, workspace) as client:
        command = "echo before the end; sleep 60.9753"
        asked = client.ask("execute_command", command=command, timeout_seconds=0.5, wait_seconds=30)
        await decider.allow("sleep 60.9753")
        told = await asked.told()

    assert (told.status, told.is_error) == ("failed", True)
    assert told.data["output"] == "before the end\n"
    assert "ran out of time" in told.text
    assert "before the end" in told.text
    assert find_processes("60.9753") == []


async def test_the_json_format_puts_the_same_facts_into_the_text(
    home_of_all: Home, decider: Person, workspace: Path
) -> None:
    async with agent(home_of_all, workspace) as client:
        asked = client.ask("execute_command", command="echo facts; exit 3", response_format="json")
        await decider.allow("echo facts")
        told = await asked.told()

    facts = json.loads(told.text)
    assert (facts["exit_code"], facts["output"]) == (3, "facts\n")
    assert {name: told.data[name] for name in facts} == facts
    assert told.is_error is False, "a command that exits with 3 was run as asked"
