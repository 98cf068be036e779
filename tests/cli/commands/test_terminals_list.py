"""Terminals of a real daemon, listed and named on the command line."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.support.cli_home import Home, Json, open_terminal, wait_for_end

from handrail.cli.client import reach
from handrail.cli.commands.terminals import find_terminal, terminal_state

SHAPE = {"id", "name", "running", "pid", "exit_code", "cwd"}

pytestmark = pytest.mark.e2e


def test_terminals_have_the_shape_that_scripts_rely_on(handrail: Home, asking: str) -> None:
    found = next(each for each in handrail.ok("terminals", "--json").json if each["id"] == asking)
    assert found.keys() >= SHAPE
    assert (found["name"], found["running"], found["exit_code"]) == ("asking", True, None)
    assert found["cwd"] == str(handrail.workspace)
    os.kill(found["pid"], 0)
    table = handrail.ok("terminals").out
    assert asking in table
    assert "● asks" in table or "◐ running" in table, "it asks once it has been looked at"


def test_an_ended_terminal_is_listed_only_when_asked_for(handrail: Home) -> None:
    made = open_terminal(handrail, "exit 4")
    assert wait_for_end(handrail, made)["exit_code"] == 4
    assert made not in handrail.ok("terminals").out
    assert "✗ exit 4" in handrail.ok("terminals", "--all").out


def test_what_is_meant_is_found_by_letters_or_name_and_a_running_one_comes_first(handrail: Home) -> None:
    old = open_terminal(handrail, "exit 0", "twice")
    wait_for_end(handrail, old)
    new = open_terminal(handrail, "exec sleep 600", "twice")
    with reach("read") as link:
        assert find_terminal(link, "twice") == new
        assert find_terminal(link, old) == old
        assert find_terminal(link, new[:8]) == new
    handrail.ok("terminal", "close", new)


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
    row: Any = {**idle, "running": True, "busy": False, **facts}
    assert terminal_state(row)[0] == words
