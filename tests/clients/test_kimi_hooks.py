"""Kimi Code and goose take a denial and nothing else."""

import json

import pytest

from handrail.clients.hook_event import Edit, HookKind, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

KIMI, GOOSE = DIALECTS["kimi"], DIALECTS["goose"]
BASE: Json = {"session_id": "session_7973", "cwd": "/w", "client_type": "kimi_code_cli", "session_title": "t"}


def kimi(tool: str, input: Json, event: str = "PreToolUse", **more: Json | str) -> Json:
    return {
        **BASE,
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": input,
        "tool_call_id": "call_1",
        **more,
    }


def goose(tool: str, input: Json, event: str = "PreToolUse") -> Json:
    call: Json = {
        "event": event,
        "session_id": "abc",
        "matcher_context": tool,
        "tool_name": tool,
        "tool_input": input,
    }
    return {**call, "working_dir": "/w", "tool_call_id": "call_1"}


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("Bash", {"command": "ls", "cwd": "sub"}, Work(sort="command", commands=("ls",), cwd="sub")),
        ("Write", {"path": "a", "content": "x"}, Work(sort="edit", edits=(Edit(path="a", content="x"),))),
        ("Write", {"path": "a", "content": "x", "mode": "append"},
         Work(sort="edit", edits=(Edit(path="a", content="x", appended=True),))),
        ("Edit", {"path": "a", "old_string": "1", "new_string": "2", "replace_all": True},
         Work(sort="edit", edits=(Edit(path="a", replacements=(("1", "2"),), replace_all=True),))),
        ("Read", {"path": "a"}, Work(sort="read", paths=("a",))),
        ("FetchURL", {"url": "https://a.org"}, Work(sort="fetch", urls=("https://a.org",))),
        ("TodoList", {"todos": []}, Work(sort="harmless")),
        ("TowerSpawn", {}, Work(sort="other")),
        ("mcp__handrail__read_file", {}, Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
    ],
)  # fmt: skip
def test_the_work_of_kimis_tools_is_known(tool: str, input: Json, work: Work) -> None:
    event = KIMI.read(kimi(tool, input), {})

    assert (event.call, event.work) == ("call_1", work)


def test_kimi_tells_the_result_in_fields_of_its_own() -> None:
    done = KIMI.read(kimi("Bash", {"command": "x"}, "PostToolUse", tool_output="made-here\n"), {})
    error: Json = {"name": "Error", "message": "no\nCommand failed with exit code: 2."}
    failed = KIMI.read(kimi("Bash", {"command": "x"}, "PostToolUseFailure", error=error), {})

    assert (done.output, done.failed) == ("made-here\n", False)
    assert (failed.output, failed.failed, failed.exit_code) == (error["message"], True, 2)


def test_kimi_reports_a_permission_request_without_waiting_so_that_it_is_a_notification() -> None:
    event = KIMI.read(kimi("Bash", {"command": "x"}, "PermissionRequest"), {})

    assert (event.kind, event.message, event.work) == ("notified", "Kimi Code asks about Bash.", None)


def test_an_allow_means_nothing_to_kimi() -> None:
    event = KIMI.read(kimi("Bash", {"command": "x"}), {})

    assert KIMI.answer(event, Verdict(effect="allow")).stdout == ""


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("developer__shell", {"command": "ls"}, Work(sort="command", commands=("ls",))),
        ("developer__write", {"path": "a", "content": "x"}, Work(sort="edit", edits=(Edit(path="a", content="x"),))),
        ("developer__edit", {"path": "a", "before": "1", "after": "2"},
         Work(sort="edit", edits=(Edit(path="a", replacements=(("1", "2"),)),))),
        ("developer__text_editor", {"command": "write", "path": "a", "file_text": "x"},
         Work(sort="edit", edits=(Edit(path="a", content="x"),))),
        ("developer__text_editor", {"command": "view", "path": "a"}, Work(sort="read", paths=("a",))),
        ("developer__tree", {"path": "a"}, Work(sort="read", paths=("a",))),
        ("handrail__read_file", {}, Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
        ("developer__tomorrow", {}, Work(sort="mcp", server="developer", server_tool="tomorrow")),
        ("tomorrow", {}, Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_gooses_tools_is_known(tool: str, input: Json, work: Work) -> None:
    event = GOOSE.read(goose(tool, input), {})

    assert (event.kind, event.session, event.cwd, event.call, event.work) == (
        "before",
        "abc",
        "/w",
        "call_1",
        work,
    )


@pytest.mark.parametrize(
    ("name", "kind", "failed"),
    [
        ("PostToolUse", "after", False),
        ("PostToolUseFailure", "after", True),
        ("UserPromptSubmit", "prompted", False),
        ("PreToolUseResult", "ignored", False),
    ],
)
def test_the_events_of_goose_have_a_kind(name: str, kind: HookKind, failed: bool) -> None:
    event = GOOSE.read(goose("developer__shell", {"command": "ls"}, name), {})

    assert (event.kind, event.failed) == (kind, failed)


def test_goose_is_blocked_by_a_decision_and_allowed_by_silence() -> None:
    event = GOOSE.read(goose("developer__shell", {"command": "ls"}), {})

    deny = GOOSE.answer(event, Verdict(effect="deny", reason="No."))
    assert json.loads(deny.stdout) == {"decision": "block", "reason": "No."}
    for effect in ("allow", "pass"):
        assert GOOSE.answer(event, Verdict(effect=effect)).stdout == ""
