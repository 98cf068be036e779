"""Approvals from the command line: listed, shown in full, answered once."""

import json
import subprocess

import pytest
from tests.support.cli_home import BOUND, Agent, Home, Json

pytestmark = pytest.mark.e2e

SHAPE = {"id", "call_id", "tool", "status", "risk", "reasons", "digest", "asked_at"}


def test_approvals_have_the_shape_that_scripts_rely_on(handrail: Home, agent: Agent) -> None:
    agent.call("write_file", path="new.txt", content="new\n")
    asked = handrail.asked()[0]
    assert asked.keys() >= SHAPE
    assert (asked["tool"], asked["status"], asked["risk"]) == ("write_file", "open", "medium")
    assert len(asked["digest"]) == 64
    assert asked["id"] in handrail.ok("approvals").out
    assert asked["id"] in [row["id"] for row in handrail.ok("approvals", "--json").json]


def test_nothing_waiting_is_a_sentence_and_an_empty_list(alone: Home) -> None:
    alone.up()
    assert alone.ok("approvals").err == "Nothing waits for you.\n"
    assert alone.ok("approvals", "--json").json == []


def test_approve_shows_the_diff_and_the_write_is_done(handrail: Home, agent: Agent) -> None:
    (handrail.workspace / "a.txt").write_text("one\ntwo\n")
    request = agent.call("edit_file", path="a.txt", old_string="two", new_string="three")
    asked = handrail.asked()[0]

    done = handrail.ok("approve", asked["id"][:6])

    assert "-two\n" in done.out
    assert "+three\n" in done.out
    assert done.out.endswith(f"✓ allowed {asked['id']}\n")
    assert agent.answer(request)["structuredContent"]["status"] == "done"
    assert (handrail.workspace / "a.txt").read_text() == "one\nthree\n"


def test_approve_shows_the_whole_command_and_where_it_runs(handrail: Home, agent: Agent) -> None:
    command = "echo " + "a long word " * 60 + "&& echo \u202eend"
    agent.call("execute_command", command=command, wait_seconds=600)
    out = handrail.ok("approve", handrail.asked()[0]["id"]).out
    assert command.replace("\u202e", "\\u{202e}") in out
    assert f"  in {handrail.workspace}\n" in out
    assert "⚠ Contains hidden characters, shown escaped: 1 text direction override." in out


def test_a_denial_reaches_the_agent_with_its_reason(handrail: Home, agent: Agent) -> None:
    request = agent.call("write_file", path="new.txt", content="new\n")
    asked = handrail.asked()[0]

    handrail.ok("deny", asked["id"], "-m", "Use the other folder.")

    told = agent.answer(request)
    assert told["structuredContent"]["status"] == "denied"
    assert told["structuredContent"]["reason"] == "Use the other folder."
    assert not (handrail.workspace / "new.txt").exists()


def test_a_second_answer_is_told_who_was_first(handrail: Home, agent: Agent) -> None:
    agent.call("write_file", path="new.txt", content="new\n")
    asked = handrail.asked()[0]
    handrail.ok("deny", asked["id"])
    late = handrail.run("approve", asked["id"])
    assert late.code == 1
    assert late.err.startswith("Already denied by a person on the command line")
    assert handrail.own(handrail.ok("approvals", "--all", "--json").json)[0]["status"] == "denied"


def test_an_approval_that_is_not_there_is_a_sentence(handrail: Home) -> None:
    done = handrail.run("approve", "a-nobody")
    assert done.code == 1
    assert done.err == "There is no approval a-nobody. `handrail approvals` lists what there is.\n"


def test_following_for_programs_tells_each_change_and_asks_nothing(handrail: Home, agent: Agent) -> None:
    pipe = subprocess.PIPE
    with handrail.start(
        "approvals", "-f", "--json", stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL
    ) as follower:
        agent.call("write_file", path="new.txt", content="new\n")
        handrail.asked()
        opened = next_own(follower, handrail)
        assert opened["status"] == "open"
        handrail.ok("deny", opened["id"])
        answered = next_own(follower, handrail)
        assert (answered["id"], answered["status"]) == (opened["id"], "denied")
        follower.terminate()
        follower.wait(BOUND)


def next_own(follower: subprocess.Popen[str], handrail: Home) -> Json:
    """The next change that a follower tells of this workspace; the test's own limit bounds it."""
    assert follower.stdout is not None
    return next(row for line in follower.stdout for row in handrail.own([json.loads(line)]))
