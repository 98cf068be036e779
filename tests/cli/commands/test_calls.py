"""Calls as the command line shows them, and a person's verbs about them."""

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.cli_home import BOUND, Agent, Home, Json, Screen
from tests.support.daemon_home import watch_exit

pytestmark = pytest.mark.e2e

SHAPE = {"id", "tool", "title", "status", "caller", "thread", "started_at", "elapsed_ms"}
SLOW = "echo first; exec sleep 600"


def running(handrail: Home, agent: Agent, command: str = SLOW) -> tuple[int, str]:
    """A command that was allowed and has printed: the request's number and the call's id."""
    request = agent.call("execute_command", command=command, wait_seconds=600)
    asked = handrail.asked()[0]
    handrail.ok("approve", asked["id"])
    handrail.becomes(asked["call_id"], "running")
    handrail.printed(asked["call_id"])
    return request, asked["call_id"]


def test_calls_have_the_shape_that_scripts_rely_on(handrail: Home, agent: Agent) -> None:
    (handrail.workspace / "a.txt").write_text("hello\n")
    agent.answer(agent.call("read_file", path="a.txt"))
    agent.answer(agent.call("read_file", path="b.txt"))

    failed, done = handrail.calls()

    assert done.keys() >= SHAPE
    assert (done["tool"], done["status"], done["caller"]["client"]) == ("read_file", "done", "test agent")
    assert failed["status"] == "failed"
    table = handrail.ok("calls").out
    assert done["id"] in table
    assert "✗ failed" in table
    assert [row["id"] for row in handrail.own(handrail.ok("calls", "--status", "failed", "--json").json)] == [
        failed["id"]
    ]


def test_the_table_fits_80_columns_and_says_when(
    handrail: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "a-folder-with-a-long-name/and-one-more/"
    agent.answer(agent.call("read_file", path=f"{folder}one.txt"))
    agent.answer(agent.call("read_file", path=f"{folder}two.txt"))
    newest, older = handrail.calls()
    monkeypatch.setitem(handrail.env, "COLUMNS", "80")
    with Screen(handrail, "calls") as screen:
        *_, header, shown = screen.shows(older["id"]).rpartition("AT ")
    lines = (header + shown).splitlines()
    (row,) = (n for n, line in enumerate(lines) if newest["id"] in line)
    assert max(map(len, lines)) <= 80
    assert re.match(r"\d\d:\d\d", lines[row].strip()), lines[row]
    assert len(lines) - row <= 6, "one call does not run down the screen"


def test_polls_of_one_agent_in_a_row_are_one_line_of_the_table(handrail: Home, agent: Agent) -> None:
    (handrail.workspace / "a.txt").write_text("hello\n")
    agent.answer(agent.call("read_file", path="a.txt"))
    for _ in range(3):
        agent.answer(agent.call("list_calls"))
    newest, *others = [row["id"] for row in handrail.calls()]
    table = handrail.ok("calls").out
    assert newest in table
    assert "and 2 more like it" in table
    assert [each for each in others if each in table] == [others[-1]]


def test_no_calls_yet_is_a_sentence_and_an_empty_list(alone: Home) -> None:
    alone.up()
    assert "handrail demo" in alone.ok("calls").err
    assert alone.calls() == []


def test_a_filter_that_nothing_passes_says_so_and_an_unknown_status_is_a_usage_error(handrail: Home) -> None:
    assert handrail.ok("calls", "--tool", "no_such_tool").err.startswith("No call matches.")
    wrong = handrail.run("calls", "--status", "bogus")
    assert wrong.code == 2
    assert "interrupted" in wrong.err


def test_cancel_returns_what_was_printed_and_ends_the_command(handrail: Home, agent: Agent) -> None:
    request, call = running(handrail, agent)

    done = handrail.ok("cancel", call[:6])

    assert done.out.startswith(f"Cancelled. {call} ")
    answer = agent.answer(request)
    assert answer["isError"] is True
    assert answer["structuredContent"]["status"] == "cancelled"
    assert "first" in answer["structuredContent"]["output"]
    again = handrail.run("cancel", call)
    assert (again.code, again.err) == (1, "It had ended before: cancelled. Nothing was changed.\n")


def test_complete_returns_the_output_so_far_and_the_command_goes_on(handrail: Home, agent: Agent) -> None:
    request, call = running(handrail, agent, "echo $$; exec sleep 600")

    done = handrail.ok("complete", call)

    assert "The agent is told: Command force-completed by user. May still be running in terminal." in done.out
    told = agent.answer(request)["structuredContent"]
    assert told["status"] == "force-completed"
    os.kill(int(told["output"]), 0)


def test_complete_and_stop_ends_the_command(handrail: Home, agent: Agent) -> None:
    request, call = running(handrail, agent, "echo $$; exec sleep 600")
    pid = os.pidfd_open(int(handrail.output(call)))

    forced = handrail.ok("complete", call, "--stop", "--json").json

    assert forced["won"] is True
    assert agent.answer(request)["structuredContent"]["status"] == "force-completed"
    assert handrail.ended(pid)


def test_complete_with_a_text_gives_the_agent_that_text(handrail: Home, agent: Agent) -> None:
    request, call = running(handrail, agent)
    handrail.ok("complete", call, "--text", "It is up on port 8000.")
    assert agent.answer(request)["structuredContent"]["output"] == "It is up on port 8000."


def test_complete_on_a_waiting_write_shows_the_diff_and_accepts_it(handrail: Home, agent: Agent) -> None:
    request = agent.call("write_file", path="new.txt", content="one\ntwo\n")
    call = handrail.asked()[0]["call_id"]

    done = handrail.ok("complete", call)

    assert "+one\n" in done.out
    assert agent.answer(request)["structuredContent"]["status"] == "done"
    assert (handrail.workspace / "new.txt").read_text() == "one\ntwo\n"


def test_complete_on_a_waiting_command_cancels_it_and_says_that(handrail: Home, agent: Agent) -> None:
    request = agent.call("execute_command", command="touch ran", wait_seconds=600)
    call = handrail.asked()[0]["call_id"]

    done = handrail.ok("complete", call)

    assert done.out.startswith(f"Cancelled: there was no output to return. {call} ")
    assert agent.answer(request)["structuredContent"]["status"] == "cancelled"
    assert not (handrail.workspace / "ran").exists()


@pytest.mark.parametrize("verb", ["cancel", "complete"])
def test_a_call_that_is_not_there_is_a_sentence(handrail: Home, verb: str) -> None:
    for name in ("c-n", "c-nobody-at-all"):
        done = handrail.run(verb, name)
        assert (done.code, done.err) == (
            1,
            f"There is no call {name}. `handrail calls` lists what there is.\n",
        )


def test_what_an_agent_wrote_is_escaped_in_every_listing(handrail: Home, agent: Agent) -> None:
    agent.call("execute_command", command="echo \x1b]0;owned\x07\u202e")
    asked = handrail.asked()[0]
    for command in (("calls",), ("approvals",), ("deny", asked["id"]), ("calls", "--json")):
        out = handrail.ok(*command).out
        assert "owned" in out
        assert not set("\x1b\x07\u202e") & set(out)


def test_following_calls_tells_each_change_and_survives_a_killed_daemon(
    alone: Home, lone_agent: Agent
) -> None:
    _, before = running(alone, lone_agent, "echo before; exec sleep 600")
    with alone.start("calls", "-f", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        try:
            assert read_until(follower, before, "running") == ["running"]  # from here on it follows
            _, call = running(alone, lone_agent)
            assert read_until(follower, call, "running") == ["waiting", "running"]
            pid = alone.ok("status", "--json").json["pid"]
            with watch_exit(pid) as gone:
                os.kill(pid, signal.SIGKILL)
                assert gone(BOUND)
            alone.up()
            alone.ok("cancel", call)
            assert read_until(follower, call, "cancelled")[-1] == "cancelled"
            (alone.workspace / "a.txt").write_text("hello\n")
            lone_agent.answer(lone_agent.call("read_file", path="a.txt"))
            assert read_until(follower, alone.calls()[0]["id"], "done")[-1] == "done"
        finally:
            follower.send_signal(signal.SIGINT)
        assert follower.wait(BOUND) == 130


def read_until(follower: subprocess.Popen[str], call: str, status: str) -> list[str]:
    """The states of a call that a follower tells, up to this one; the test's own limit bounds it."""
    assert follower.stdout is not None
    seen: list[str] = []
    while status not in seen:
        row: Json = json.loads(follower.stdout.readline())
        seen += [row["status"]] if row["id"] == call else []
    return seen


def test_a_command_that_an_agent_runs_cannot_decide_for_the_person(
    handrail: Home, agent: Agent, tmp_path: Path
) -> None:
    agent.call("write_file", path="new.txt", content="new\n")
    waiting = handrail.asked()[0]
    verbs = [
        ("approve", waiting["id"]),
        ("deny", waiting["id"]),
        ("cancel", waiting["call_id"]),
        ("complete", waiting["call_id"]),
        ("open",),
        ("credential",),
        ("down",),
        ("restart",),
    ]
    env = f"HANDRAIL_HOME={handrail.path} PYTHONPATH={handrail.env['PYTHONPATH']}"
    lines = [f"{env} {shlex.join(handrail.argv(*verb))}; echo code $?" for verb in verbs]
    request = agent.call("execute_command", command="\n".join(lines), wait_seconds=60)
    handrail.ok("approve", handrail.asked(2)[1]["id"])

    output: str = agent.answer(request)["structuredContent"]["output"]

    assert output.count("code 1") == len(verbs), output
    assert output.count("Do it on the page") == len(verbs), output
    assert "#code=" not in output
    assert [row["id"] for row in handrail.asked()] == [waiting["id"]]
