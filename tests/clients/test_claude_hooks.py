"""Claude Code's payloads become events, and verdicts become the JSON that it obeys."""

import json

import pytest

from handrail.clients.hook_event import Edit, HookKind, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

CLAUDE = DIALECTS["claude"]
BASE: Json = {
    "session_id": "d5bb",
    "transcript_path": "/home/me/.claude/projects/-w/d5bb.jsonl",
    "cwd": "/w",
    "prompt_id": "0a72",
    "permission_mode": "default",
    "effort": {"level": "medium"},
}
SKILL_WARNING = "A skill can contain commands that Claude Code runs without asking its hooks."


def before(tool: str, input: Json, **more: Json | str) -> Json:
    call: Json = {
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": input,
        "tool_use_id": "toolu_1",
    }
    return {**BASE, **call, **more}


def test_a_tool_call_is_read_with_its_session_and_its_work() -> None:
    event = CLAUDE.read(before("Bash", {"command": "touch x", "description": "Make x"}), {})

    assert (event.kind, event.session, event.cwd, event.call) == ("before", "d5bb", "/w", "toolu_1")
    assert event.transcript == "/home/me/.claude/projects/-w/d5bb.jsonl"
    assert (event.tool, event.input) == ("Bash", {"command": "touch x", "description": "Make x"})
    assert event.mode == "default"
    assert event.work == Work(sort="command", commands=("touch x",))


def test_a_call_of_a_subagent_names_the_subagent() -> None:
    event = CLAUDE.read(before("Bash", {"command": "ls"}, agent_id="acc7", agent_type="general-purpose"), {})

    assert event.subagent == "acc7"


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("Edit", {"file_path": "/w/a", "old_string": "1", "new_string": "2"},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("Edit", {"file_path": "/w/a", "old_string": "1", "new_string": "", "replace_all": True},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", ""),), replace_all=True),))),
        ("Edit", {"file_path": "/w/new", "old_string": "", "new_string": "text"},
         Work(sort="edit", edits=(Edit(path="/w/new", content="text"),))),
        ("MultiEdit", {"file_path": "/w/a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"), ("3", "4"))),))),
        ("Write", {"file_path": "/w/a", "content": ""}, Work(sort="edit", edits=(Edit(path="/w/a", content=""),))),
        ("Read", {"file_path": "/w/a"}, Work(sort="read", paths=("/w/a",))),
        ("Grep", {"pattern": "x"}, Work(sort="read")),
        ("WebFetch", {"url": "https://example.org", "prompt": "p"}, Work(sort="fetch", urls=("https://example.org",))),
        ("WebSearch", {"query": "q"}, Work(sort="fetch")),
        ("TodoWrite", {"todos": []}, Work(sort="harmless")),
        ("Task", {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}, Work(sort="harmless")),
        ("Agent", {"description": "d", "prompt": "p", "isolation": "remote"},
         Work(sort="other", warning="The subagent works in a place of its own: remote.")),
        ("Skill", {"skill": "deploy"}, Work(sort="other", warning=SKILL_WARNING)),
        ("Monitor", {"command": "tail -f log"}, Work(sort="command", commands=("tail -f log",))),
        ("Monitor", {"ws": {"url": "wss://example.org"}}, Work(sort="fetch", urls=("wss://example.org",))),
        ("Bash", {"command": "id", "dangerouslyDisableSandbox": True},
         Work(sort="command", commands=("id",), warning="Claude Code would run this outside of its sandbox.")),
        ("REPL", {"code": "1"}, Work(sort="other")),
        ("TomorrowsTool", {}, Work(sort="other")),
        ("mcp__github__create_issue", {}, Work(sort="mcp", server="github", server_tool="create_issue")),
    ],
)  # fmt: skip
def test_the_work_of_a_built_in_tool_is_known(tool: str, input: Json, work: Work) -> None:
    assert CLAUDE.read(before(tool, input), {}).work == work


def test_a_known_tool_with_a_strange_input_asks_and_says_why() -> None:
    work = CLAUDE.read(before("Bash", {"command": 7}), {}).work

    warning = "Handrail cannot read the input of Bash. The field command must be text, but is a number."
    assert work == Work(sort="other", warning=warning)


@pytest.mark.parametrize(
    ("server", "ours"),
    [
        (None, True),
        ({"name": "handrail", "source": "user"}, True),
        ({"name": "handrail", "source": "local"}, True),
        ({"name": "handrail", "source": "managed"}, True),
        ({"name": "handrail", "source": "project"}, False),
        ({"name": "handrail", "source": "plugin"}, False),
        ({"name": "handrail", "source": "dynamic"}, False),
        ({"name": "handrail"}, False),
        ({"name": "other", "source": "user"}, False),
    ],
)
def test_our_tools_are_known_by_name_and_by_the_source_of_their_server(
    server: Json | None, ours: bool
) -> None:
    more = {} if server is None else {"mcp_server": server}
    work = CLAUDE.read(before("mcp__handrail__execute_command", {}, **more), {}).work

    assert work is not None
    assert (work.sort, work.ours) == ("mcp", ours)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SessionStart", "session_started"),
        ("SessionEnd", "session_ended"),
        ("UserPromptSubmit", "prompted"),
        ("Stop", "stopped"),
        ("Notification", "notified"),
        ("SubagentStop", "ignored"),
        ("EventOfTomorrow", "ignored"),
    ],
)
def test_events_without_a_tool_have_a_kind(name: str, kind: HookKind) -> None:
    assert CLAUDE.read({**BASE, "hook_event_name": name}, {}).kind == kind


def test_a_notification_and_the_end_of_a_turn_carry_their_text() -> None:
    notified = CLAUDE.read({**BASE, "hook_event_name": "Notification", "message": "Claude waits"}, {})
    stopped = CLAUDE.read({**BASE, "hook_event_name": "Stop", "last_assistant_message": "Done."}, {})

    assert (notified.message, stopped.message) == ("Claude waits", "Done.")


def after(event: str, **fields: object) -> Json:
    return {**BASE, "hook_event_name": event, "tool_use_id": "toolu_1", **fields}  # pyright: ignore[reportReturnType]


def test_the_result_of_a_command_is_its_output_and_exit_code() -> None:
    response = {"stdout": "hi", "stderr": "oh", "interrupted": False, "isImage": False}
    payload = after("PostToolUse", tool_name="Bash", tool_input={"command": "x"}, tool_response=response)

    event = CLAUDE.read(payload, {})

    assert (event.kind, event.failed, event.output, event.exit_code) == ("after", False, "hi\noh", 0)


def test_a_failed_command_tells_its_exit_code_in_its_error() -> None:
    error = "Exit code 3\nout"
    payload = after("PostToolUseFailure", tool_name="Bash", tool_input={"command": "x"}, error=error)

    event = CLAUDE.read(payload, {})

    assert (event.failed, event.output, event.exit_code) == (True, error, 3)


def test_a_command_in_the_background_has_no_exit_code_yet() -> None:
    response = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": "b1"}
    payload = after("PostToolUse", tool_name="Bash", tool_input={"command": "x"}, tool_response=response)

    assert CLAUDE.read(payload, {}).exit_code is None


BEFORE = CLAUDE.read(before("Bash", {"command": "touch x"}), {})
PERMISSION = CLAUDE.read(
    {**BASE, "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {}}, {}
)


def output(verdict: Verdict, *, permission: bool = False) -> Json:
    answer = CLAUDE.answer(PERMISSION if permission else BEFORE, verdict)
    assert (answer.status, answer.stderr) == (0, "")
    return json.loads(answer.stdout)["hookSpecificOutput"]


def test_a_verdict_before_a_call_is_a_permission_decision() -> None:
    assert output(Verdict(effect="deny", reason="No.")) == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "No.",
    }
    assert output(Verdict(effect="allow", input={"command": "touch y"})) == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "touch y"},
    }
    assert (
        output(Verdict(effect="allow", feedback="A person says so."))["additionalContext"]
        == "A person says so."
    )
    assert "additionalContext" not in output(
        Verdict(effect="deny", reason="No.", feedback="A person says so.")
    )
    assert CLAUDE.answer(BEFORE, Verdict(effect="pass")).stdout == ""


def test_a_verdict_on_a_permission_request_is_a_behavior() -> None:
    assert output(Verdict(effect="deny", reason="No."), permission=True) == {
        "hookEventName": "PermissionRequest",
        "decision": {"behavior": "deny", "message": "No."},
    }
    assert output(Verdict(effect="allow"), permission=True)["decision"] == {"behavior": "allow"}
    edited = output(Verdict(effect="allow", input={"command": "y"}), permission=True)
    assert edited["decision"] == {"behavior": "allow", "updatedInput": {"command": "y"}}
    assert CLAUDE.answer(PERMISSION, Verdict(effect="pass")).stdout == ""


def test_an_allow_does_not_answer_the_clients_own_question_to_its_user() -> None:
    event = CLAUDE.read(before("ExitPlanMode", {"plan": "p"}), {})

    assert CLAUDE.answer(event, Verdict(effect="allow")).stdout == ""
    assert "deny" in CLAUDE.answer(event, Verdict(effect="deny", reason="No.")).stdout


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ([], "The payload must be a JSON object, but is a list."),
        ({}, "The field hook_event_name is missing."),
        ({"hook_event_name": 1}, "The field hook_event_name must be text, but is a number."),
        ({"hook_event_name": "PreToolUse"}, "The field tool_name is missing."),
        ({"hook_event_name": "PreToolUse", "tool_name": ""}, "The field tool_name is empty."),
        (
            {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": []},
            "The field tool_input must be a JSON object, but is a list.",
        ),
    ],
)
def test_garbage_gets_a_sentence(payload: Json, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the sentence is compared below)
        CLAUDE.read(payload, {})

    assert str(caught.value) == sentence
