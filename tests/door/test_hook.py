"""The hook program without a daemon: which events it refuses, in which format, and which it must never block."""

import json
from typing import Any

import pytest

from handrail.clients.cline import EVENTS as CLINE_EVENTS
from handrail.clients.cursor import WINDSURF_EVENTS
from handrail.clients.hook_event import HookKind
from handrail.clients.hooks import DIALECTS
from handrail.clients.opencode import EVENTS as OPENCODE_EVENTS
from handrail.door.hook import LIMIT, LIMITS, refuse

WHY = "the daemon is down."


def known_events() -> list[tuple[str, str, HookKind]]:
    """Every event that a dialect knows, by client."""
    tables = {name: getattr(dialect, "events", {}) for name, dialect in DIALECTS.items()}
    tables |= {"cline": CLINE_EVENTS, "windsurf": WINDSURF_EVENTS, "opencode": OPENCODE_EVENTS}
    return [(client, event, kind) for client, events in tables.items() for event, kind in events.items()]


@pytest.mark.parametrize(("client", "event", "kind"), known_events())
def test_an_event_is_refused_exactly_if_it_can_stop_a_tool_call(
    client: str, event: str, kind: HookKind
) -> None:
    answer = refuse(client, event, b"", WHY)
    is_silent = answer == {"stdout": "", "stderr": "", "status": 0}
    if (client, event) == ("kimi", "PermissionRequest"):
        return  # Kimi only reports that it asks; `handrail connect` configures no hook for it
    assert is_silent == (kind not in ("before", "permission"))


@pytest.mark.parametrize(
    "client", ["claude", "codex", "qwen", "kimi", "windsurf", "goose", "vscode", "opencode"]
)
def test_most_clients_read_the_reason_on_stderr_and_block_by_exit_status_2(client: str) -> None:
    answer = refuse(client, "", b'{"hook_event_name": "PreToolUse"}', WHY)
    assert (answer["stdout"], answer["status"]) == ("", 2)
    assert WHY in answer["stderr"]


def test_clients_that_hide_stderr_or_ignore_exit_codes_get_json() -> None:
    copilot = parsed(refuse("copilot", "preToolUse", b"{}", WHY))
    assert (copilot["permissionDecision"], WHY in copilot["permissionDecisionReason"]) == ("deny", True)
    assert (copilot["behavior"], WHY in copilot["message"]) == ("deny", True)
    assert parsed(refuse("gemini", "BeforeTool", b"{}", WHY))["decision"] == "deny"
    assert parsed(refuse("cursor", "preToolUse", b"{}", WHY))["permission"] == "deny"


def test_cline_gets_a_command_that_fails_with_the_reason_in_the_place_of_its_own() -> None:
    command = {"hookName": "tool_call", "tool_call": {"name": "run_commands", "input": {"commands": ["ls"]}}}
    override = parsed(refuse("cline", "", json.dumps(command).encode(), "it's down."))["overrideInput"]
    assert override["commands"][0].endswith("it'\\''s down.' >&2; false")
    write: dict[str, Any] = {"hookName": "tool_call", "tool_call": {"name": "write_to_file", "input": {}}}
    assert parsed(refuse("cline", "", json.dumps(write).encode(), WHY))["cancel"] is True


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"7", b'{"event": 7}', b"[" * 100_000])
def test_a_payload_that_names_no_event_is_refused(payload: bytes) -> None:
    assert refuse("claude", "", payload, WHY)["status"] == 2


def test_an_event_within_the_tools_input_does_not_count() -> None:
    payload = {"hook_event_name": "PreToolUse", "tool_input": {"hook_event_name": "Stop", "event": "Stop"}}
    assert refuse("claude", "", json.dumps(payload).encode(), WHY)["status"] == 2


def test_the_programs_own_clock_ends_after_that_of_the_daemon() -> None:
    for name, dialect in DIALECTS.items():
        assert LIMITS.get(name, LIMIT) > dialect.clock_seconds, name


def parsed(answer: dict[str, Any]) -> dict[str, Any]:
    return json.loads(answer["stdout"])
