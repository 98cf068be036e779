"""Making a rule from a question, in the terminal."""

import pytest
from tests.cli.interactive.test_question import GOES_BACK, made, ready, run, status
from tests.support.cli_home import Agent, Home, Screen

pytestmark = pytest.mark.e2e

LINE = "Pattern of the rule, for this project. Enter: touch "


def test_r_takes_the_suggested_pattern_shows_what_it_would_do_and_makes_it_by_a_second_key(
    handrail: Home, agent: Agent
) -> None:
    first = run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.type("r")
        screen.shows(LINE)
        screen.type("\n")
        seen = screen.shows(GOES_BACK)
        screen.type("a")  # within the guard
        assert "Would allow `touch …` in this project. It matches " in seen
        assert "would have decided " in seen
        assert screen.stays_without("✓ allowed", 1.0)
        assert made(handrail) == []
        screen.type("a")
        screen.shows("✓ allowed")
        screen.shows("`handrail rules remove r")
    assert status(agent, first) == "done"
    assert made(handrail) == [("touch", "project")]
    assert status(agent, run(agent, "touch b")) == "done"


def test_a_pattern_of_ones_own_is_taken(handrail: Home, agent: Agent) -> None:
    run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.type("r")
        screen.shows(LINE)
        screen.type("touch  a $\n")
        assert "Would allow exactly `touch  a`" in ready(screen, GOES_BACK)
        screen.type("a")
        screen.shows("✓ allowed")
    assert made(handrail) == [("touch  a $", "project")]


def test_a_pattern_that_cannot_be_a_rule_is_told_and_nothing_is_answered(
    handrail: Home, agent: Agent
) -> None:
    run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.type("r")
        screen.shows(LINE)
        screen.type("*\n")
        screen.shows("would allow many programs")
        ready(screen)
    assert handrail.asked()[0]["status"] == "open"
    assert made(handrail) == []


def test_each_part_has_a_line_and_one_can_be_left_out(handrail: Home, agent: Agent) -> None:
    run(agent, "touch a && mkdir b")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.type("r")
        screen.shows(LINE)
        screen.type("-\n")
        screen.shows("Enter: mkdir ")
        screen.type("\n")
        ready(screen, GOES_BACK)
        screen.type("a")
        screen.shows("✓ allowed")
    assert made(handrail) == [("mkdir", "project")]


def test_who_wants_no_rule_after_all_goes_back(handrail: Home, agent: Agent) -> None:
    request = run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.type("r")
        screen.shows(LINE)
        screen.type("\n")
        ready(screen, GOES_BACK)
        screen.type("q")
        ready(screen)
        screen.type("d")
        screen.shows("⊘ denied")
    assert status(agent, request) == "denied"
    assert made(handrail) == []


def test_where_no_rule_can_decide_that_is_said(handrail: Home, agent: Agent) -> None:
    run(agent, "echo $HOME")
    with Screen(handrail, "approvals", "-f") as screen:
        assert "[r]ule" not in ready(screen)
        screen.type("r")
        screen.shows("No rule can cover this call")
        ready(screen)
