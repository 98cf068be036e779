"""Every dialect: no payload raises anything but ValueError, and a denial always has the form that blocks."""

import json
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.clients.hook_event import HookAnswer, HookEvent, Json, Verdict
from handrail.clients.hooks import DIALECTS

NAMES = (
    "claude", "codex", "gemini", "opencode", "qwen", "copilot", "kimi", "cline", "cursor", "windsurf", "goose", "vscode",
)  # fmt: skip


def hook_specific(answer: HookAnswer) -> str:
    output = json.loads(answer.stdout)["hookSpecificOutput"]
    assert output["permissionDecision"] == "deny"
    return output["permissionDecisionReason"]


def field(name: str, value: str, reason: str) -> Callable[[HookAnswer], str]:
    def reason_of(answer: HookAnswer) -> str:
        output = json.loads(answer.stdout)
        assert output[name] == value
        return output[reason]

    return reason_of


def cline_override(answer: HookAnswer) -> str:
    (line,) = json.loads(answer.stdout)["overrideInput"]["commands"]
    assert line.endswith(" >&2; false")
    return line


def exit_status(answer: HookAnswer) -> str:
    assert answer.status == 2
    return answer.stderr


COMMANDS: dict[str, tuple[Json, Callable[[HookAnswer], str]]] = {
    "claude": (
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        hook_specific,
    ),
    "codex": (
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        hook_specific,
    ),
    "gemini": (
        {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": "ls"}},
        field("decision", "deny", "reason"),
    ),
    "opencode": (
        {"event": "tool.execute.before", "tool": "bash", "args": {"command": "ls"}},
        field("effect", "deny", "reason"),
    ),
    "qwen": (
        {"hook_event_name": "PreToolUse", "tool_name": "run_shell_command", "tool_input": {"command": "ls"}},
        hook_specific,
    ),
    "copilot": (
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        hook_specific,
    ),
    "kimi": (
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        hook_specific,
    ),
    "cline": (
        {
            "hookName": "tool_call",
            "tool_call": {"id": "1", "name": "run_commands", "input": {"commands": ["ls"]}},
        },
        cline_override,
    ),
    "cursor": (
        {"hook_event_name": "preToolUse", "tool_name": "Shell", "tool_input": {"command": "ls"}},
        field("permission", "deny", "agent_message"),
    ),
    "windsurf": ({"agent_action_name": "pre_run_command", "tool_info": {"command_line": "ls"}}, exit_status),
    "goose": (
        {"event": "PreToolUse", "tool_name": "developer__shell", "tool_input": {"command": "ls"}},
        field("decision", "block", "reason"),
    ),
    "vscode": (
        {"hook_event_name": "PreToolUse", "tool_name": "run_in_terminal", "tool_input": {"command": "ls"}},
        hook_specific,
    ),
}
"""A command in each client's payload, and what its denial must look like."""


def test_every_client_has_a_dialect_under_its_name() -> None:
    assert tuple(DIALECTS) == NAMES
    assert all(dialect.name == name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_read_as_a_question(name: str) -> None:
    event = DIALECTS[name].read(COMMANDS[name][0], {})

    assert event.work is not None
    assert (event.kind, event.work.sort, event.work.commands) == ("before", "command", ("ls",))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reason", ["No: it's 'theirs' and \"ours\".", ""])
def test_a_denial_has_the_form_that_blocks_and_a_reason(name: str, reason: str) -> None:
    payload, reason_of = COMMANDS[name]
    event = DIALECTS[name].read(payload, {})

    text = reason_of(DIALECTS[name].answer(event, Verdict(effect="deny", reason=reason)))

    assert text.strip()
    if reason and name != "cline":
        assert text.strip() == reason


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_without_an_opinion_does_not_block(name: str) -> None:
    event = DIALECTS[name].read(COMMANDS[name][0], {})

    answer = DIALECTS[name].answer(event, Verdict(effect="pass"))

    assert answer.status == 0
    assert "deny" not in answer.stdout
    assert "block" not in answer.stdout
    assert "cancel" not in answer.stdout


def edited_command(event: HookEvent) -> Json:
    return json.loads(json.dumps(event.input).replace('"ls"', '"ls -l"'))


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_input_is_applied_or_refused_but_never_dropped(name: str) -> None:
    payload, reason_of = COMMANDS[name]
    dialect = DIALECTS[name]
    event = dialect.read(payload, {})

    answer = dialect.answer(event, Verdict(effect="allow", input=edited_command(event)))

    if dialect.edits:
        assert "ls -l" in reason_of(answer)
    else:
        assert answer.status == 0
        assert '"ls -l"' in answer.stdout
        assert "deny" not in answer.stdout


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_tool_asks(name: str) -> None:
    payload = json.loads(json.dumps(COMMANDS[name][0]))
    tool = "pre_mcp_tool_use" if name == "windsurf" else "toolOfTomorrow"
    for names in (
        "Bash",
        "bash",
        "run_shell_command",
        "run_commands",
        "Shell",
        "run_in_terminal",
        "developer__shell",
    ):
        payload = json.loads(json.dumps(payload).replace(f'"{names}"', f'"{tool}"'))
    payload = json.loads(json.dumps(payload).replace("pre_run_command", "pre_mcp_tool_use"))

    work = DIALECTS[name].read(payload, {}).work

    assert work is not None
    assert work.sort in ("other", "mcp")
    assert not work.ours


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_comes_before_the_clients_own_limit(name: str) -> None:
    limits = {"qwen": 60, "kimi": 590, "cline": 120}

    assert 20 <= DIALECTS[name].clock_seconds < limits.get(name, 86_400)


@pytest.mark.parametrize("name", NAMES)
def test_garbage_gets_a_sentence(name: str) -> None:
    wrong_types = dict.fromkeys(EVENT_FIELDS, 1)
    for payload in cast("list[Json]", [[], None, "text", {}, wrong_types]):
        with pytest.raises(ValueError, match=r"^[A-Z].*\.$"):
            DIALECTS[name].read(payload, {})


WORDS = st.sampled_from([
    "hook_event_name", "tool_name", "tool_input", "event", "tool", "args", "hookName", "tool_call", "preToolUse", "name",
    "input", "agent_action_name", "tool_info", "command", "commands", "cwd", "session_id", "mcp_context", "server_name",
    "tool_response", "tool_result", "error", "file_path", "path", "edits", "content", "PreToolUse", "PostToolUse",
    "BeforeTool", "AfterTool", "tool.execute.before", "tool.execute.after", "tool_result", "pre_run_command",
    "pre_write_code", "Bash", "Edit", "Write", "bash", "run_commands", "editor", "apply_patch", "run_shell_command",
    "web_fetch", "Shell", "MultiEdit", "multi_replace_string_in_file", "mcp__handrail__x", "toolName", "toolArgs",
    "requests", "files", "*** Begin Patch\n*** Update File: a\n@@\n*** End Patch", "workspace_roots", "metadata", "exit",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)
EVENT_FIELDS = ("hook_event_name", "event", "hookName", "agent_action_name")


@st.composite
def payloads(draw: st.DrawFn) -> Json:
    """An object with the fields that the dialects look for, and values of any type."""
    fields = draw(st.dictionaries(WORDS, VALUES, max_size=8))
    event = draw(WORDS)
    return cast("Json", {**fields, **dict.fromkeys(EVENT_FIELDS, event)} if draw(st.booleans()) else fields)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(payload=payloads(), reason=st.text(max_size=20))
def test_no_payload_raises_anything_but_value_error(payload: Json, reason: str) -> None:
    for dialect in DIALECTS.values():
        try:
            event = dialect.read(payload, {})
        except ValueError:
            continue
        assert (event.work is not None) == (event.kind in ("before", "permission"))
        answer = dialect.answer(event, Verdict(effect="deny", reason=reason))
        if event.work is not None:
            assert answer.stdout.strip() or (answer.status == 2 and answer.stderr.strip())
        if answer.stdout:
            assert json.loads(answer.stdout)
