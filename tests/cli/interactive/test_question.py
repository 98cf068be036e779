"""One question in the terminal: every way to answer it."""

import pytest
from tests.cli.interactive.test_keyboard_hand import ARMED, KEYS
from tests.support.cli_home import Agent, Home, Json, Screen

pytestmark = pytest.mark.e2e

GOES_BACK = "any other key goes back."


def ready(screen: Screen, words: str = KEYS, *, after: str = "") -> str:
    """What is shown, perhaps after a key, up to these words, once keys count."""
    seen = screen.press(after, words) if after else screen.shows(words)
    assert screen.stays_without("✓ allowed", ARMED)
    return seen


def made(handrail: Home) -> list[tuple[str, str]]:
    rows: list[Json] = handrail.ok("rules", "--json").json
    return [(row["command"], row["scope"]) for row in rows if row["workspace"] == str(handrail.workspace)]


def run(agent: Agent, command: str) -> int:
    return agent.call("execute_command", command=command, wait_seconds=600)


def status(agent: Agent, request: int) -> str:
    return agent.answer(request)["structuredContent"]["status"]


def test_high_risk_takes_a_capital_letter(handrail: Home, agent: Agent) -> None:
    outside = handrail.workspace.parent
    request = agent.call("execute_command", command="echo hi", cwd=str(outside))
    with Screen(handrail, "approvals", "-f") as screen:
        assert "HIGH" in ready(screen)
        screen.press("a", "High risk: press Shift+A to allow it.")
        screen.press("A", "✓ allowed")
    assert agent.answer(request)["structuredContent"]["output"] == "hi\n"


def test_a_question_says_its_parts_why_it_is_asked_and_what_would_also_be_allowed(
    handrail: Home, agent: Agent
) -> None:
    handrail.ok("rules", "add", "allow", "git status")
    run(agent, "git status && touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        seen = screen.shows(KEYS)
    assert "Why you are asked: This folder is not trusted" in seen
    assert f"`handrail trust {handrail.workspace}` trusts this folder." in seen
    assert "  1  git status  ✓ allow by r" in seen
    assert "  2  touch a  ● ask\n" in seen
    assert "this would also be allowed: `touch …` in this project" in seen


def test_s_allows_the_like_of_it_for_the_session(handrail: Home, agent: Agent) -> None:
    first = run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.press("s", "✓ allowed")
        screen.shows("allows `touch …` in this session")
        assert status(agent, first) == "done"
        assert status(agent, run(agent, "touch b")) == "done"
    assert made(handrail) == [("touch", "session")]


def test_s_and_r_alone_never_allow_high_risk(handrail: Home, agent: Agent) -> None:
    (handrail.workspace / "build").mkdir()
    request = run(agent, "rm -r build")
    with Screen(handrail, "approvals", "-f") as screen:
        assert "HIGH" in ready(screen)
        for key in ("s", "r"):
            if key == "r":
                screen.press(key, "Pattern of the rule")
                screen.type("\n")
                screen.shows(GOES_BACK)
            else:
                screen.press(key, GOES_BACK)
            screen.type("A")  # within the guard
            assert screen.stays_without("✓ allowed", ARMED)
            ready(screen, after="a")
        assert (handrail.workspace / "build").exists()
        assert made(handrail) == []
        ready(screen, GOES_BACK, after="s")
        screen.press("A", "✓ allowed")
    assert status(agent, request) == "done"
    assert [scope for _, scope in made(handrail)] == ["session"]


def test_e_edits_the_command_and_what_it_comes_to_is_asked_anew(handrail: Home, agent: Agent) -> None:
    handrail.env["EDITOR"] = "sed -i s/worse/better/"
    request = run(agent, "touch worse")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        seen = screen.press("e", KEYS)
        screen.type("a")  # within the guard
        assert "As you edited it · medium" in seen
        assert "  touch better\n" in seen
        assert "The agent will be told: A person changed this call" in seen
        assert "as edited   [e]dit again   [o]riginal" in seen
        assert screen.stays_without("✓ allowed", ARMED)
        screen.press("s", "Rules are about what was asked.")
        ready(screen)
        screen.press("a", "✓ allowed")
    assert agent.answer(request)["structuredContent"]["edited"]["input"] == {
        "command": "touch better",
        "wait_seconds": 600,
    }
    assert (handrail.workspace / "better").exists()
    assert not (handrail.workspace / "worse").exists()


def test_an_edit_can_be_put_back(handrail: Home, agent: Agent) -> None:
    handrail.env["EDITOR"] = "sed -i s/worse/better/"
    request = run(agent, "touch worse")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        ready(screen, after="e")
        assert "  touch worse\n" in ready(screen, after="o")
        screen.press("a", "✓ allowed")
    assert status(agent, request) == "done"
    assert (handrail.workspace / "worse").exists()


def test_an_edit_that_makes_it_high_risk_takes_a_capital_letter(handrail: Home, agent: Agent) -> None:
    handrail.env["EDITOR"] = 'sed -i "s/touch a/rm -r a/"'
    request = run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        assert "As you edited it · HIGH" in ready(screen, after="e")
        screen.press("a", "High risk: press Shift+A to allow it.")
        screen.press("d", "⊘ denied")
    assert status(agent, request) == "denied"


def test_e_edits_the_proposed_file_itself(handrail: Home, agent: Agent) -> None:
    handrail.env["EDITOR"] = "sed -i s/theirs/mine/"
    request = agent.call("write_file", path="notes.md", content="theirs\n")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        assert "  +mine\n" in ready(screen, after="e")
        screen.press("a", "✓ allowed")
    assert agent.answer(request)["structuredContent"]["review"]["edited"] == 1
    assert (handrail.workspace / "notes.md").read_text() == "mine\n"


def test_an_editor_that_fails_leaves_the_question_as_it_was(handrail: Home, agent: Agent) -> None:
    handrail.env["EDITOR"] = "false"
    request = run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.press("e", "ended with 1, so nothing was changed.")
        ready(screen)
        screen.press("d", "⊘ denied")
    assert status(agent, request) == "denied"


def test_an_empty_reason_goes_back(handrail: Home, agent: Agent) -> None:
    request = run(agent, "touch a")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        screen.press("D", "Reason")
        screen.type("\n")
        ready(screen)
        screen.press("a", "✓ allowed")
    assert status(agent, request) == "done"


def test_n_leaves_it_open_and_the_next_one_is_asked(handrail: Home, agent: Agent) -> None:
    run(agent, "touch one")
    handrail.asked()
    run(agent, "touch two")
    handrail.asked(2)
    with Screen(handrail, "approvals", "-f") as screen:
        assert "touch one" in ready(screen)
        screen.press("n", "it still waits.")
        assert "touch two" in ready(screen)
    assert len(handrail.asked(2)) == 2


def test_what_is_out_of_date_is_shown_anew(handrail: Home, agent: Agent) -> None:
    handrail.env["EDITOR"] = "sed -i s/theirs/mine/"
    file = handrail.workspace / "notes.md"
    file.write_text("before\n")
    agent.call("write_file", path="notes.md", content="theirs\n")
    with Screen(handrail, "approvals", "-f") as screen:
        ready(screen)
        ready(screen, after="e")
        file.write_text("changed meanwhile\n")
        screen.press("a", "The file has changed since you looked at it.")
        assert "+theirs" in ready(screen)
    assert file.read_text() == "changed meanwhile\n"
    assert handrail.asked()[0]["status"] == "open"
