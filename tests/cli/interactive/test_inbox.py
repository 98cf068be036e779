"""Being asked in the terminal: the fallback for whoever has no browser at hand."""

import pytest
from tests.support.cli_home import Agent, Home, Screen

from handrail.cli.interactive.keyboard import GUARD_SECONDS

pytestmark = pytest.mark.e2e

KEYS = "[n]ext"


def test_a_denial_with_a_reason_reaches_the_agent_and_the_next_question_is_asked(
    handrail: Home, agent: Agent
) -> None:
    first = agent.call("write_file", path="one.txt", content="1\n")
    handrail.asked()
    with Screen(handrail, "approvals", "-f") as screen:
        screen.shows(KEYS)
        second = agent.call("write_file", path="two.txt", content="2\n")
        handrail.asked(2)
        assert screen.stays_without("denied", GUARD_SECONDS + 0.2)
        screen.press("D", "Reason")
        screen.type("Use the\x7f\x7f a mirror.\n")
        screen.shows("⊘ denied")
        assert "two.txt" in screen.shows(KEYS)
        assert screen.stays_without("denied", GUARD_SECONDS + 0.2)
        screen.press("d", "⊘ denied")
    assert agent.answer(first)["structuredContent"]["reason"] == "Use t a mirror."
    assert agent.answer(second)["structuredContent"]["status"] == "denied"


def test_ctrl_c_leaves_the_question_open(handrail: Home, agent: Agent) -> None:
    agent.call("write_file", path="new.txt", content="new\n")
    with Screen(handrail, "approvals", "-f") as screen:
        screen.shows(KEYS)
        screen.type("\x03")
        assert screen.ends() == 130
    assert handrail.asked()[0]["status"] == "open"
