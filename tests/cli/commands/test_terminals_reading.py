"""What a terminal of a real daemon printed, read on the command line."""

from __future__ import annotations

import base64
import os
import signal
import subprocess

import pytest
from tests.support.cli_home import BOUND, Home, open_terminal, wait_for_end, wait_for_output

HOSTILE = r"printf 'one\033]0;owned\007\033[31mred\033[0m \342\200\256two\n'"

pytestmark = pytest.mark.e2e


def test_reading_makes_text_of_it_and_raw_does_not(handrail: Home) -> None:
    made = open_terminal(handrail, HOSTILE)
    wait_for_end(handrail, made)
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
    made = open_terminal(handrail, "seq 1 50; printf 'half a line'; exec sleep 600", cols=40, rows=10)
    wait_for_output(handrail, made, "half a line")
    assert handrail.ok("terminal", "read", made, "--lines", "2").out.split("\n")[-2:] == ["50", "half a line"]
    first = handrail.ok("terminal", "read", made, "--json").json
    assert handrail.ok("terminal", "read", made, "--after", str(first["next"] - 4)).out == "line"
    screen = handrail.ok("terminal", "read", made, "--screen").out.split("\n")
    assert screen[:3] == ["42", "43", "44"]
    assert "half a line" in screen
    handrail.ok("terminal", "close", made)


def test_more_than_one_piece_is_read_whole(handrail: Home) -> None:
    made = open_terminal(handrail, "seq 1 200000")
    assert wait_for_end(handrail, made)["bytes"] > 1_000_000
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
    made = open_terminal(alone, 'echo ready; while read -r line; do echo "got <$line>"; done')
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
