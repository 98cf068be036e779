"""Terminals on the command line, of a real daemon: listed, read, typed into, searched, closed."""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.cli.agent import Agent
from tests.cli.scene import BOUND, Home, Json, within

from handrail.cli.link import reach
from handrail.cli.terminals import state, which

pytestmark = pytest.mark.e2e

SHAPE = {"id", "name", "running", "pid", "exit_code", "cwd"}
HOSTILE = r"printf 'one\033]0;owned\007\033[31mred\033[0m \342\200\256two\n'"


def opened(home: Home, script: str, name: str = "", **more: object) -> str:
    """A terminal of the person's own that runs this."""
    body = {
        "of": "shell",
        "keep": True,
        "name": name,
        "command": ["sh", "-c", script],
        "cwd": str(home.workspace),
        "env": {"PATH": os.environ["PATH"], "TERM": "xterm"},
        **more,
    }
    with reach("person") as link:
        return str(link.post("terminals", body=body)["id"])


def shows(home: Home, terminal: str, words: str) -> str:
    """All it has printed, once that is in it."""

    def look() -> str | None:
        out = home.ok("terminal", "read", terminal).out
        return out if words in out else None

    return within(look, words)


def row(home: Home, terminal: str) -> Json:
    return next(each for each in home.ok("terminals", "--all", "--json").json if each["id"] == terminal)


def ended(home: Home, terminal: str) -> Json:
    def look() -> Json | None:
        found = row(home, terminal)
        return None if found["running"] else found

    return within(look, f"{terminal} to end")


@pytest.fixture
def asking(handrail: Home) -> Iterator[str]:
    """A terminal that says back what it is told, until it is told to leave."""
    script = 'echo ready; while read -r line; do echo "got <$line>"; [ "$line" = leave ] && exit 3; done'
    made = opened(handrail, script, "asking")
    shows(handrail, made, "ready")
    yield made
    handrail.run("terminal", "close", made)


def test_terminals_have_the_shape_that_scripts_rely_on(handrail: Home, asking: str) -> None:
    found = next(each for each in handrail.ok("terminals", "--json").json if each["id"] == asking)
    assert found.keys() >= SHAPE
    assert (found["name"], found["running"], found["exit_code"]) == ("asking", True, None)
    assert found["cwd"] == str(handrail.workspace)
    os.kill(found["pid"], 0)
    table = handrail.ok("terminals").out
    assert asking in table
    assert "◐" in table


def test_an_ended_terminal_is_listed_only_when_asked_for(handrail: Home) -> None:
    made = opened(handrail, "exit 4")
    assert ended(handrail, made)["exit_code"] == 4
    assert made not in handrail.ok("terminals").out
    assert "✗ exit 4" in handrail.ok("terminals", "--all").out


def test_what_is_sent_is_typed_with_enter_and_keys(handrail: Home, asking: str) -> None:
    done = handrail.ok("terminal", "send", asking[:6], "hello")
    assert done.out == f"Typed into terminal {asking} asking.\n"
    shows(handrail, asking, "got <hello>")
    handrail.ok("terminal", "send", asking, "no", "--no-newline")
    handrail.ok("terminal", "send", asking, "--key", "x", "--key", "enter")
    shows(handrail, asking, "got <nox>")
    handrail.ok("terminal", "send", "asking", "leave")
    assert ended(handrail, asking)["exit_code"] == 3
    late = handrail.run("terminal", "send", asking, "late")
    assert late.code == 1
    assert "ended" in late.err


def test_what_to_send_may_come_from_stdin(handrail: Home, asking: str) -> None:
    with handrail.start("terminal", "send", asking, "-", stdin=subprocess.PIPE) as sender:
        sender.communicate("from a pipe\n", timeout=BOUND)
        assert sender.returncode == 0
    shows(handrail, asking, "got <from a pipe>")


def test_an_unknown_key_is_told(handrail: Home, asking: str) -> None:
    wrong = handrail.run("terminal", "send", asking, "--key", "ctrl-nonsense")
    assert wrong.code == 1
    assert "ctrl-nonsense" in wrong.err


def test_reading_makes_text_of_it_and_raw_does_not(handrail: Home) -> None:
    made = opened(handrail, HOSTILE)
    ended(handrail, made)
    text = handrail.ok("terminal", "read", made).out
    assert text == "onered \\u{202e}two\n"
    raw = subprocess.run(
        handrail.argv("terminal", "read", made, "--raw"),
        env=handrail.env,
        capture_output=True,
        timeout=BOUND,
        check=True,
    ).stdout
    assert raw == b"one\x1b]0;owned\x07\x1b[31mred\x1b[0m \xe2\x80\xaetwo\r\n"
    whole = handrail.ok("terminal", "read", made, "--raw", "--json").json
    assert base64.b64decode(whole["base64"]) == raw
    assert (whole["start"], whole["next"], whole["end"]) == (0, len(raw), len(raw))
    listed = handrail.ok("terminal", "search", made, "two", "--raw").out
    assert not set("\x1b\x07\u202e") & set(text + listed)


def test_a_part_can_be_read_by_lines_by_offset_or_as_a_screen(handrail: Home) -> None:
    made = opened(handrail, "seq 1 50; printf 'half a line'; exec sleep 600", cols=40, rows=10)
    shows(handrail, made, "half a line")
    assert handrail.ok("terminal", "read", made, "--lines", "2").out.split("\n")[-2:] == ["50", "half a line"]
    first = handrail.ok("terminal", "read", made, "--json").json
    assert handrail.ok("terminal", "read", made, "--after", str(first["next"] - 4)).out == "line"
    screen = handrail.ok("terminal", "read", made, "--screen").out.split("\n")
    assert screen[:3] == ["42", "43", "44"]
    assert "half a line" in screen
    handrail.ok("terminal", "close", made)


def test_more_than_one_piece_is_read_whole(handrail: Home) -> None:
    made = opened(handrail, "seq 1 200000")
    assert ended(handrail, made)["bytes"] > 1_000_000
    assert handrail.ok("terminal", "read", made).out.split() == [str(number) for number in range(1, 200_001)]


def test_following_shows_what_comes_until_it_ends(handrail: Home, asking: str) -> None:
    with handrail.start("terminal", "read", asking, "--follow", stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "ready\n"
        handrail.ok("terminal", "send", asking, "more")
        assert [follower.stdout.readline() for _ in range(2)] == ["more\n", "got <more>\n"]
        handrail.ok("terminal", "send", asking, "leave")
        assert follower.communicate(timeout=BOUND)[0] == "leave\ngot <leave>\n"
        assert follower.returncode == 0


def test_following_survives_a_killed_daemon(alone: Home) -> None:
    alone.up()
    made = opened(alone, 'echo ready; while read -r line; do echo "got <$line>"; done')
    with alone.start(
        "terminal", "read", made, "-f", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "ready\n"
        daemon = alone.ok("status", "--json").json["pid"]
        gone = os.pidfd_open(daemon)
        os.kill(daemon, signal.SIGKILL)
        assert alone.ended(gone)
        alone.up()
        alone.ok("terminal", "send", made, "again")
        assert [follower.stdout.readline() for _ in range(2)] == ["again\n", "got <again>\n"]
        alone.ok("terminal", "close", made)
        assert follower.wait(BOUND) == 0


def test_searching_shows_lines_with_their_numbers(handrail: Home) -> None:
    made = opened(handrail, r"seq 1 30; printf 'An \033[31mERROR\033[0m here\nlast\n'")
    ended(handrail, made)
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
    made = opened(handrail, "setsid sleep 600 & exec sleep 601")
    leader = os.pidfd_open(row(handrail, made)["pid"])
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


def test_what_is_meant_is_found_by_letters_or_name_and_a_running_one_comes_first(handrail: Home) -> None:
    old = opened(handrail, "exit 0", "twice")
    ended(handrail, old)
    new = opened(handrail, "exec sleep 600", "twice")
    with reach("read") as link:
        assert which(link, "twice") == new
        assert which(link, old) == old
        assert which(link, new[:8]) == new
    handrail.ok("terminal", "close", new)


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
    assert row(handrail, asking)["running"] is True


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "◐ running"),
        ({"busy": True, "foreground": "vim"}, "◐ vim"),
        ({"asks": {"secret": True}}, "● asks for a secret"),
        ({"asks": {"secret": False}}, "● asks"),
        ({"taken": {"by": "page"}}, "◐ taken over"),
        ({"running": False, "exit_code": 0}, "✓ exit 0"),
        ({"running": False, "signal": "SIGTERM"}, "✗ SIGTERM"),
        ({"running": False}, "◌ lost"),
    ],
)
def test_the_state_is_said_in_words(facts: Json, words: str) -> None:
    idle: Json = dict.fromkeys(("asks", "taken", "foreground", "signal", "exit_code"))
    assert state({**idle, "running": True, "busy": False, **facts})[0] == words
    assert json.dumps(facts)
