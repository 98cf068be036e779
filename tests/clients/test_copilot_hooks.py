"""Copilot CLI has two payload formats; VS Code runs the same hook files with tools of its own."""

import json

import pytest

from handrail.clients.hook_event import Edit, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

COPILOT, VSCODE, CLAUDE = DIALECTS["copilot"], DIALECTS["vscode"], DIALECTS["claude"]
BASE: Json = {"session_id": "eb55", "timestamp": "2026-11-18T09:23:15.320Z", "cwd": "/w"}
CAMEL: Json = {"sessionId": "eb55", "timestamp": 1794993427785, "cwd": "/w"}


def before(tool: str, input: Json) -> Json:
    return {**BASE, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input}


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("Bash", {"command": "ls", "description": "d"}, Work(sort="command", commands=("ls",))),
        ("Write", {"path": "/w/a", "file_text": "x"}, Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("Edit", {"path": "/w/a", "old_str": "1", "new_str": "2"},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("str_replace_editor", {"command": "create", "path": "/w/a", "file_text": "x"},
         Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("Read", {"path": "/w/a"}, Work(sort="read", paths=("/w/a",))),
        ("Grep", {"pattern": "x", "paths": ["a", "b"]}, Work(sort="read", paths=("a", "b"))),
        ("web_fetch", {"url": "https://a.org"}, Work(sort="fetch", urls=("https://a.org",))),
        ("Agent", {"name": "sub", "prompt": "p", "agent_type": "general-purpose", "description": "d"}, Work(sort="harmless")),
        ("read_bash", {"shellId": "0", "delay": 1}, Work(sort="harmless")),
        ("sql", {"description": "d", "query": "UPDATE todos SET done = 1"}, Work(sort="harmless")),
        ("sql", {"description": "d", "query": "ATTACH 'x' AS y"},
         Work(sort="other", warning="The query may reach files outside of the session's database.")),
        ("echo-echo", {"text": "hi"}, Work(sort="mcp", server="echo", server_tool="echo")),
        ("handrail-execute_command", {}, Work(sort="mcp", server="handrail", server_tool="execute_command", ours=True)),
        ("run_in_terminal", {"command": "ls"}, Work(sort="command", commands=("ls",))),
        ("tool_of_tomorrow", {}, Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_a_built_in_tool_is_known(tool: str, input: Json, work: Work) -> None:
    assert COPILOT.read(before(tool, input), {}).work == work


def test_text_for_a_running_shell_is_a_command_with_a_warning() -> None:
    work = COPILOT.read(before("write_bash", {"shellId": "0", "input": "rm x{enter}"}), {}).work

    assert work is not None
    assert (work.sort, work.commands) == ("command", ("rm x{enter}",))
    assert work.warning


def test_the_payload_of_an_event_in_camel_case_is_read_too() -> None:
    call: Json = {**CAMEL, "toolName": "bash", "toolArgs": {"command": "ls"}}
    as_text: Json = {**CAMEL, "toolName": "bash", "toolArgs": '{"command": "ls"}'}
    result: Json = {
        **call,
        "toolResult": {
            "resultType": "success",
            "textResultForLlm": "x\n<shellId: 1 completed with exit code 2>",
        },
    }

    for payload in (call, as_text):
        event = COPILOT.read(payload, {})
        assert (event.kind, event.session, event.work) == (
            "before",
            "eb55",
            Work(sort="command", commands=("ls",)),
        )
    after = COPILOT.read(result, {})
    assert (after.kind, after.exit_code, after.failed) == ("after", 2, True)


@pytest.mark.parametrize(
    ("tool", "input", "sort"),
    [
        ("bash", {"command": "ls"}, "command"),
        ("edit", {"file_path": "/w/a", "diff": "\ndiff --git a/w/a b/w/a\n"}, "edit"),
        ("echo/echo", {"text": "hi"}, "mcp"),
    ],
)
def test_a_permission_request_is_read(tool: str, input: Json, sort: str) -> None:
    payload: Json = {**CAMEL, "hookName": "permissionRequest", "toolName": tool, "toolInput": input}

    event = COPILOT.read(payload, {})

    assert event.work is not None
    assert (event.kind, event.work.sort) == ("permission", sort)
    assert json.loads(COPILOT.answer(event, Verdict(effect="allow")).stdout)["behavior"] == "allow"
    assert json.loads(COPILOT.answer(event, Verdict(effect="deny", reason="No.")).stdout)["message"] == "No."


def test_a_subagent_belongs_to_the_session_of_its_parent_which_goes_on_when_it_stops() -> None:
    mark: Json = {
        "session_id": "8967",
        "agent_id": "8967",
        "agent_type": "general-purpose",
        "parent_agent_id": "eb55",
    }

    call = COPILOT.read({**before("Bash", {"command": "ls"}), **mark}, {})
    stop = COPILOT.read({**BASE, **mark, "hook_event_name": "Stop", "stop_reason": "end_turn"}, {})

    assert (call.kind, call.session, call.subagent) == ("before", "eb55", "8967")
    assert stop.kind == "ignored"


def test_the_result_of_a_tool_is_the_text_for_the_model() -> None:
    result: Json = {
        "result_type": "success",
        "text_result_for_llm": "made-here\n<shellId: 0 completed with exit code 0>",
    }
    payload: Json = {
        **before("Bash", {"command": "x"}),
        "hook_event_name": "PostToolUse",
        "tool_result": result,
    }

    event = COPILOT.read(payload, {})

    assert (event.output, event.exit_code, event.failed) == (result["text_result_for_llm"], 0, False)


def test_a_denial_has_both_forms_because_copilot_runs_the_tool_if_it_gets_the_wrong_one() -> None:
    event = COPILOT.read(before("Bash", {"command": "ls"}), {})

    answer = json.loads(COPILOT.answer(event, Verdict(effect="deny", reason="No.")).stdout)

    assert (answer["permissionDecision"], answer["permissionDecisionReason"]) == ("deny", "No.")
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_changed_input_has_both_forms() -> None:
    event = COPILOT.read(before("Bash", {"command": "ls", "description": "d"}), {})
    edited: Json = {"command": "ls -l", "description": "d"}

    answer = json.loads(COPILOT.answer(event, Verdict(effect="allow", input=edited)).stdout)

    assert answer["modifiedArgs"] == answer["hookSpecificOutput"]["updatedInput"] == edited


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("runTerminalCommand", {"command": "ls"}, Work(sort="command", commands=("ls",))),
        ("create_file", {"filePath": "/w/a", "content": "x"}, Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("replace_string_in_file", {"filePath": "/w/a", "oldString": "1", "newString": "2"},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("multi_replace_string_in_file", {"replacements": [{"filePath": "/w/a", "oldString": "1", "newString": "2"}]},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("editFiles", {"files": ["a", "b"]},
         Work(sort="edit", edits=(Edit(path="a"), Edit(path="b")), warning="The input does not show the new text of the whole file.")),
        ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
         Work(sort="edit", edits=(Edit(path="a", delete=True),))),
        ("create_and_run_task", {"task": {"command": "make", "args": ["all"]}}, Work(sort="command", commands=("make all",))),
        ("fetch_webpage", {"urls": ["https://a.org"]}, Work(sort="fetch", urls=("https://a.org",))),
        ("mcp_handrail_read_file", {}, Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
        ("Bash", {"command": "ls"}, Work(sort="command", commands=("ls",))),
    ],
)  # fmt: skip
def test_the_work_of_vs_codes_tools_is_known(tool: str, input: Json, work: Work) -> None:
    payload: Json = {
        "sessionId": "s",
        "hookEventName": "PreToolUse",
        "cwd": "/w",
        "tool_name": tool,
        "tool_input": input,
    }

    event = VSCODE.read(payload, {})

    assert (event.kind, event.session, event.work) == ("before", "s", work)


def test_vs_code_may_run_the_hooks_of_claude_code() -> None:
    assert CLAUDE.read(before("run_in_terminal", {"command": "ls"}), {}).work == Work(
        sort="command", commands=("ls",)
    )


def test_a_changed_input_of_another_shape_is_refused_because_vs_code_would_run_the_original() -> None:
    event = VSCODE.read(before("run_in_terminal", {"command": "ls", "isBackground": False}), {})

    answer = VSCODE.answer(event, Verdict(effect="allow", input={"command": "ls -l"}))

    assert json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
