"""One question, answered by one command: as it is, as edited, and with rules that answer the next."""

from pathlib import Path

import pytest
from tests.support.cli_home import Agent, Home, Json

pytestmark = pytest.mark.e2e


def rules(handrail: Home) -> list[Json]:
    """Those made for this workspace."""
    return [row for row in handrail.ok("rules", "--json").json if row["workspace"] == str(handrail.workspace)]


def run(agent: Agent, command: str) -> int:
    return agent.call("execute_command", command=command, wait_seconds=600)


def status(agent: Agent, request: int) -> str:
    return agent.answer(request)["structuredContent"]["status"]


def test_always_makes_the_suggested_rule_says_so_and_the_next_such_call_passes(
    handrail: Home, agent: Agent
) -> None:
    first = run(agent, "touch a && mkdir b")
    done = handrail.ok("approve", handrail.asked()[0]["id"], "--always", "--expires", "7d")
    assert status(agent, first) == "done"
    made = rules(handrail)
    assert [(row["command"], row["scope"], row["effect"]) for row in made] == [
        ("touch", "project", "allow"),
        ("mkdir", "project", "allow"),
    ]
    for row in made:
        assert row["expires_at"] is not None
        assert f"Rule {row['id']} allows `{row['command']} …` in this project until " in done.out
        assert f"`handrail rules remove {row['id']}` removes it." in done.out
    assert status(agent, run(agent, "touch c")) == "done"


def test_session_allows_the_like_of_it_to_this_client_alone(handrail: Home, agent: Agent) -> None:
    first = run(agent, "touch a")
    out = handrail.ok("approve", handrail.asked()[0]["id"], "--session").out
    assert status(agent, first) == "done"
    assert "allows `touch …` in this session" in out
    assert status(agent, run(agent, "touch b")) == "done"
    with Agent(handrail) as other:
        run(other, "touch c")
        handrail.ok("deny", handrail.asked()[0]["id"])


def test_a_pattern_and_a_scope_of_ones_own_are_taken_and_a_pattern_that_misses_is_said(
    alone: Home, lone_agent: Agent
) -> None:
    first = run(lone_agent, "npm run test:unit")
    asked = alone.asked()[0]["id"]
    done = alone.ok("approve", asked, "--always", "--pattern", "npm run lint", "--scope", "user")
    status(lone_agent, first)
    assert "With this rule, such a call would still not be allowed" in done.err
    assert "This folder is not trusted, so here such calls still need approval." in done.out
    (made,) = [row for row in alone.ok("rules", "--json").json if row["removable"]]
    assert (made["command"], made["scope"], made["workspace"]) == ("npm run lint", "user", None)


def test_where_no_rule_can_help_nothing_is_answered(handrail: Home, agent: Agent) -> None:
    run(agent, "echo $HOME")
    asked = handrail.asked()[0]["id"]
    refused = handrail.run("approve", asked, "--always")
    assert refused.code == 1
    assert refused.err.startswith("No rule can cover this call")
    assert handrail.asked()[0]["status"] == "open"
    handrail.ok("deny", asked)


def test_a_pattern_that_cannot_be_a_rule_answers_nothing(handrail: Home, agent: Agent) -> None:
    run(agent, "touch a")
    asked = handrail.asked()[0]["id"]
    refused = handrail.run("approve", asked, "--always", "--pattern", "*")
    assert (refused.code, "would allow many programs" in refused.err) == (1, True)
    assert handrail.asked()[0]["status"] == "open"


def test_an_edited_input_is_weighed_shown_and_run_and_the_agent_is_told(handrail: Home, agent: Agent) -> None:
    request = run(agent, "touch worse && echo $HOME")
    asked = handrail.asked()[0]
    out = handrail.ok("approve", asked["id"], "--input", '{"command": "touch better"}').out
    told = agent.answer(request)
    assert asked["risk"] == "high"
    shown = out.partition("As you edited it · medium · ")[2]
    assert "  touch better\n" in shown
    assert (
        'The agent will be told: A person changed this call before allowing it: `command` is "touch better"'
        in shown
    )
    assert told["structuredContent"]["edited"]["input"] == {"command": "touch better"}
    assert (handrail.workspace / "better").exists()
    assert not (handrail.workspace / "worse").exists()


def test_an_edit_that_a_rule_refuses_or_that_cannot_be_is_not_run(handrail: Home, agent: Agent) -> None:
    run(agent, "touch a")
    asked = handrail.asked()[0]["id"]
    handrail.ok("rules", "add", "deny", "touch worse", "--note", "Never that.")
    refused = handrail.run("approve", asked, "--input", '{"command": "touch worse"}')
    assert "New decision: ⊘ deny." in refused.out
    assert (refused.code, "This cannot be allowed." in refused.err, "Never that." in refused.err) == (
        1,
        True,
        True,
    )
    unfit = handrail.run("approve", asked, "--input", '{"line": "touch b"}')
    assert (unfit.code, "command" in unfit.err) == (1, True)
    assert handrail.asked()[0]["status"] == "open"


def test_the_content_of_a_file_is_written_instead(handrail: Home, agent: Agent, tmp_path: Path) -> None:
    request = agent.call("write_file", path="notes.md", content="theirs\n")
    asked = handrail.asked()[0]["id"]
    mine = tmp_path / "mine.md"
    mine.write_text("mine\n")
    out = handrail.ok("approve", asked, "--content", str(mine)).out
    told = agent.answer(request)["structuredContent"]
    assert "  +theirs\n" in out.partition("As you edited it")[0]
    assert "  +mine\n" in out.partition("As you edited it")[2]
    assert (handrail.workspace / "notes.md").read_text() == "mine\n"
    assert told["review"]["edited"] == 1


def test_programs_get_the_answer_with_the_rules_made(handrail: Home, agent: Agent) -> None:
    request = run(agent, "touch a")
    answered = handrail.ok("approve", handrail.asked()[0]["id"], "--session", "--json").json
    agent.answer(request)
    assert answered["status"] == "allowed"
    (made,) = answered["rules"]
    assert (made["command"], made["scope"], made["words"]) == (
        "touch",
        "session",
        "`touch …` in this session",
    )


def test_who_comes_late_is_told_so_however_they_answer(handrail: Home, agent: Agent, tmp_path: Path) -> None:
    agent.call("write_file", path="new.txt", content="new\n")
    asked = handrail.asked()[0]["id"]
    handrail.ok("deny", asked)
    mine = tmp_path / "mine"
    mine.write_text("mine\n")
    for late in (["--always"], ["--session"], ["--content", str(mine)], ["--always", "--pattern", "*.txt"]):
        done = handrail.run("approve", asked, *late)
        assert (done.code, done.err.partition(" by ")[0]) == (1, "Already denied"), late
