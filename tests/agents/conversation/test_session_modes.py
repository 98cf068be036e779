"""Whom an agent asks in its present mode, as far as its mode is known."""

from typing import Any

import pytest

from handrail.agents.conversation.session_modes import add_asking, find_asking, may_ask_less


def modes(current: str, *others: str) -> Any:
    listed = [{"id": each, "name": each.title(), "description": ""} for each in (current, *others)]
    return {"modes": {"current": current, "modes": listed}}


@pytest.mark.parametrize(
    ("agent", "mode", "asks"),
    [
        ("claude", "bypassPermissions", "nobody"),
        ("claude", "acceptEdits", "commands"),
        ("claude", "default", "everything"),
        ("claude", "dontAsk", "nobody"),
        ("qwen", "auto-edit", "commands"),
        ("gemini", "yolo", "nobody"),
        ("goose", "auto", "nobody"),
        ("codex", "full-access", "nobody"),
        ("codex", "agent", "nobody"),
        ("codex", "agent-full-access", "nobody"),
        ("codex", "read-only", "everything"),
        ("vibe", "accept-edits", "commands"),
        ("vibe", "auto-approve", "nobody"),
        ("copilot", "https://example.org/session-modes#autopilot", "nobody"),
    ],
)
def test_known_modes_say_whom_the_agent_asks(agent: str, mode: str, asks: str) -> None:
    found = find_asking(agent, modes(mode))
    assert found is not None
    assert (found["asks"], found["switch"]) == (asks, None)


@pytest.mark.parametrize(
    ("agent", "mode"),
    [
        ("codex", "auto"),
        ("codex", "workspace-write"),
        ("claude", "auto"),
        ("qwen", "auto"),
        ("any", "build"),
        ("any", ""),
    ],
)
def test_of_other_modes_nothing_is_claimed(agent: str, mode: str) -> None:
    assert find_asking(agent, modes(mode, "default")) is None
    assert add_asking(agent, modes(mode))["asking"] == {}


def test_the_mode_that_asks_most_is_offered() -> None:
    found = find_asking("claude", modes("bypassPermissions", "plan", "acceptEdits", "default"))
    assert found is not None
    assert found["switch"] == {"setting": "mode", "id": "", "value": "default", "name": "Default"}


def test_a_mode_among_the_options_counts_before_the_list_of_modes() -> None:
    choices = [{"value": "yolo", "name": "YOLO"}, {"value": "ask", "name": "Ask"}]
    option = {"id": "m", "category": "mode", "value": "yolo", "choices": choices}
    state: Any = {**modes("default"), "options": {"options": [option]}}
    assert find_asking("any", state) == {
        "asks": "nobody",
        "mode": "YOLO",
        "switch": {"setting": "option", "id": "m", "value": "ask", "name": "Ask"},
    }


def test_a_change_of_other_state_says_nothing_about_the_mode() -> None:
    assert add_asking("any", {"usage": {"used": 1}}) == {"usage": {"used": 1}}


def test_only_what_is_known_to_leave_the_questions_as_they_are_is_harmless() -> None:
    listed = [{"id": "m", "category": "model"}, {"id": "p", "category": "mode"}, {"id": "x", "category": ""}]
    state: Any = {"options": {"options": listed}}
    assert not may_ask_less("any", state, "m", "yolo")
    assert not may_ask_less("claude", state, "", "default")
    assert not may_ask_less("claude", state, "p", "default")
    for option, value in (
        ("", "acceptEdits"),
        ("", "plan"),
        ("p", "yolo"),
        ("x", "default"),
        ("unknown", "on"),
    ):
        assert may_ask_less("claude", state, option, value), option
