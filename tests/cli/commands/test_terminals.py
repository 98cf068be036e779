"""A terminal of a real daemon, typed into, searched and closed on the command line."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from tests.support.cli_home import (
    BOUND,
    Agent,
    Home,
    open_terminal,
    terminal_row,
    wait_for_end,
    wait_for_output,
)

pytestmark = pytest.mark.e2e


def test_what_is_sent_is_typed_with_enter_and_keys(handrail: Home, asking: str) -> None:
    done = handrail.ok("terminal", "send", asking[:6], "hello")
    assert done.out == f"Typed into terminal {asking} asking.\n"
    wait_for_output(handrail, asking, "got <hello>")
    handrail.ok("terminal", "send", asking, "no", "--no-newline")
    handrail.ok("terminal", "send", asking, "--key", "x", "--key", "enter")
    wait_for_output(handrail, asking, "got <nox>")
    handrail.ok("terminal", "send", "asking", "leave")
    assert wait_for_end(handrail, asking)["exit_code"] == 3
    late = handrail.run("terminal", "send", asking, "late")
    assert late.code == 1
    assert "ended" in late.err


def test_what_to_send_may_come_from_stdin(handrail: Home, asking: str) -> None:
    with handrail.start("terminal", "send", asking, "-", stdin=subprocess.PIPE) as sender:
        sender.communicate("from a pipe\n", timeout=BOUND)
        assert sender.returncode == 0
    wait_for_output(handrail, asking, "got <from a pipe>")


def test_an_unknown_key_is_told(handrail: Home, asking: str) -> None:
    wrong = handrail.run("terminal", "send", asking, "--key", "ctrl-nonsense")
    assert wrong.code == 1
    assert "ctrl-nonsense" in wrong.err


def test_searching_shows_lines_with_their_numbers(handrail: Home) -> None:
    made = open_terminal(handrail, r"seq 1 30; printf 'An \033[31mERROR\033[0m here\nlast\n'")
    wait_for_end(handrail, made)
    assert handrail.ok("terminal", "search", made, "error", "-i").out == "31:An ERROR here\n"
    around = handrail.ok("terminal", "search", made, "-C", "1", "^1?7$").out
    assert around == "6-6\n7:7\n8-8\n--\n16-16\n17:17\n18-18\n"
    found = handrail.ok("terminal", "search", made, "^1", "--max", "2", "--json").json
    assert [match["text"] for match in found["matches"]] == ["1", "10"]
    assert found["more"] is True
    nothing = handrail.run("terminal", "search", made, "nowhere at all")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "Nothing matches.\n")
    assert handrail.run("terminal", "search", made, "(").code == 1


def test_closing_says_what_was_stopped(handrail: Home) -> None:
    made = open_terminal(handrail, "setsid sleep 600 & exec sleep 601")
    leader = os.pidfd_open(terminal_row(handrail, made)["pid"])
    done = handrail.ok("terminal", "close", made)
    assert f"Terminal {made} sh is closed. Stopped " in done.out
    assert "sleep" in done.out
    assert handrail.ended(leader)
    again = handrail.ok("terminal", "close", made, "--json").json
    assert (again["running"], again["stopped"]) == (False, [])


def test_a_terminal_that_is_not_there_is_a_sentence(handrail: Home) -> None:
    for verb in (("read",), ("close",), ("send",), ("search",)):
        words = ["x"] if verb[0] in ("send", "search") else []
        done = handrail.run("terminal", *verb, "no-such-one", *words)
        assert done.code == 1
        assert done.err == "There is no terminal no-such-one. `handrail terminals` lists what there is.\n"


def test_without_a_daemon_it_is_3(alone: Home) -> None:
    for command in (("terminals",), ("terminal", "read", "t1"), ("terminal", "close", "t1")):
        assert alone.run(*command).code == 3


def test_a_command_that_an_agent_runs_may_list_and_nothing_else(
    handrail: Home, agent: Agent, asking: str
) -> None:
    verbs = [
        ("terminal", "read", asking),
        ("terminal", "search", asking, "ready"),
        ("terminal", "send", asking, "leave"),
        ("terminal", "close", asking),
    ]
    env = f"env -u HANDRAIL_TERMINAL HANDRAIL_HOME={handrail.path} PYTHONPATH={handrail.env['PYTHONPATH']}"
    lines = [f"{env} {shlex.join(handrail.argv(*verb))}; echo code $?" for verb in verbs]
    listed = shlex.quote(f'"id": "{asking}"')
    listing = f"{env} {shlex.join(handrail.argv('terminals', '--json'))} | grep -c {listed}"
    shell = f"{env} {shlex.join(handrail.argv('shell', '--', 'echo', 'opened'))}; echo code $?"
    request = agent.call("execute_command", command="\n".join([*lines, shell, listing]), wait_seconds=60)
    handrail.ok("approve", handrail.asked()[0]["id"])

    output: str = agent.answer(request)["structuredContent"]["output"]

    assert output.count("code 1") == len(verbs) + 1, output
    assert output.count("Do it on the page") == len(verbs) + 1, output
    assert "opened\n" not in output
    assert output.rstrip().endswith("1")
    assert terminal_row(handrail, asking)["running"] is True
