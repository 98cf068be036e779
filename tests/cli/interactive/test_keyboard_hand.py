"""Keys count for the question that was seen, while it is open, and for no other."""

import pytest
from tests.support.cli_home import Agent, Home, Screen

from handrail.cli.interactive.keyboard import GUARD_SECONDS, TICK

pytestmark = pytest.mark.e2e

KEYS = "[n]ext"
ARMED = GUARD_SECONDS + 2 * TICK
"""Seconds after which a question takes keys."""


def test_a_question_takes_no_key_that_was_typed_before_or_just_as_it_appeared(
    handrail: Home, agent: Agent
) -> None:
    request = agent.call("write_file", path="new.txt", content="new\n")
    handrail.asked()
    with Screen(handrail, "approvals", "-f") as screen:
        screen.type("aaaa")
        seen = screen.shows(KEYS)
        screen.type("a")
        assert "+new" in seen
        assert "changes a file in the workspace" in seen
        assert screen.stays_without("allowed", GUARD_SECONDS)
        assert handrail.asked()[0]["status"] == "open"
        screen.press("a", "✓ allowed")
    assert agent.answer(request)["structuredContent"]["status"] == "done"


@pytest.mark.parametrize("key", ["a", "A", "s", "r", "e", "d", "D", "n"])
def test_the_guard_holds_for_every_key(handrail: Home, agent: Agent, key: str) -> None:
    handrail.env["EDITOR"] = "false"
    agent.call("execute_command", command="touch a", wait_seconds=600)
    handrail.asked()
    with Screen(handrail, "approvals", "-f") as screen:
        screen.type(key)
        screen.shows(KEYS)
        screen.type(key)
        before = screen.text
        assert screen.stays_without("a word that never comes", ARMED)
        assert screen.text == before
    assert handrail.asked()[0]["status"] == "open"
    assert not (handrail.workspace / "a").exists()


def test_a_question_that_is_answered_elsewhere_goes_away(handrail: Home, agent: Agent) -> None:
    agent.call("write_file", path="new.txt", content="new\n")
    asked = handrail.asked()[0]
    with Screen(handrail, "approvals", "-f") as screen:
        screen.shows(KEYS)
        handrail.ok("deny", asked["id"])
        screen.shows("Answered elsewhere")


def test_what_was_typed_while_the_daemon_was_replaced_answers_nothing(alone: Home, lone_agent: Agent) -> None:
    lone_agent.call("write_file", path="new.txt", content="new\n")
    alone.asked()
    with Screen(alone, "approvals", "-f") as screen:
        screen.shows(KEYS)
        assert screen.stays_without("allowed", ARMED)
        alone.ok("restart")
        screen.shows("The daemon is back.")
        screen.type("a")
        assert screen.stays_without("allowed", GUARD_SECONDS / 2)
        assert alone.asked()[0]["status"] == "open"
