"""What a person is shown is made from what will run, and never from a record that somebody could have altered."""

import contextlib
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.user_account import Account, Attacker, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

REAL, HARMLESS = "echo approved", "echo harmless"


@pytest.fixture
def hostile(new_account: Callable[[], Account]) -> Attacker:
    return Attacker(new_account())


def alter(hostile: Attacker, kind: str) -> None:
    """Have the record of such a fact, and every list, say something harmless; as any process of the user can."""
    path = hostile.account.home / "handrail.db"
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as database, database:
        changed = database.execute(
            "update events set payload = replace(payload, ?, ?) where kind = ?", (REAL, HARMLESS, kind)
        )
        assert changed.rowcount > 0
        database.execute("update calls set title = replace(title, ?, ?)", (REAL, HARMLESS))
    for left in hostile.account.home.glob("handrail.db*"):
        os.chown(left, hostile.account.uid, -1)


def shown(hostile: Attacker) -> dict[str, Any]:
    """Everything the page and the command line are given about the open question."""
    account, person = hostile.account, hostile.person
    state = account.http("GET", "/api/state", person).json
    return {
        "approval": account.http("GET", f"/api/approvals/{hostile.ids['approval']}", person).json,
        "approvals": account.http("GET", "/api/approvals?open=true", person).json,
        "call": account.http("GET", f"/api/calls/{hostile.ids['call']}", person).json,
        "calls": account.http("GET", "/api/calls", person).json,
        "state": [state["approvals"], state["calls"]],
    }


def restart(hostile: Attacker) -> None:
    before = hostile.account.pid
    os.kill(before, signal.SIGKILL)
    hostile.account.start()
    until(lambda: hostile.account.pid != before, "another daemon is there")


def approve(hostile: Attacker) -> str:
    """Allow what is shown; what the call printed in the end."""
    seen = shown(hostile)["approval"]
    body = {"answer": "allow", "digest": seen["digest"]}
    answer = hostile.account.http("POST", f"/api/approvals/{seen['id']}/answer", hostile.person, body)
    assert answer.status == 200, answer.body
    ended = hostile.account.call(hostile.agent, "wait_for_call", call_id=hostile.ids["call"])
    return json.dumps(ended)


def test_an_altered_record_changes_nothing_that_is_shown_of_an_open_question(hostile: Attacker) -> None:
    before = shown(hostile)
    assert REAL in json.dumps(before)
    alter(hostile, "ApprovalOpened")
    assert HARMLESS not in json.dumps(shown(hostile))
    assert before["approval"]["preview"] == shown(hostile)["approval"]["preview"]


def test_an_altered_question_is_shown_as_what_would_run_after_a_restart_too(hostile: Attacker) -> None:
    alter(hostile, "ApprovalOpened")
    restart(hostile)
    until(lambda: shown(hostile)["approval"]["preview"], "what would run is shown anew")
    assert HARMLESS not in json.dumps(shown(hostile))
    assert shown(hostile)["approval"]["preview"]["command"] == REAL
    assert "approved" in approve(hostile)


def test_an_altered_call_never_runs_under_the_old_approval(hostile: Attacker) -> None:
    alter(hostile, "CallOpened")
    restart(hostile)
    assert REAL not in json.dumps(shown(hostile)["approval"])  # what is shown is what would run
    told = approve(hostile)
    assert "no longer what would run" in told
    assert "harmless\\n" not in told


def test_an_answer_that_stands_only_in_the_record_runs_nothing(hostile: Attacker) -> None:
    path = hostile.account.home / "handrail.db"
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as database, database:
        database.execute("update approvals set answer = 'allow', answered_by = 'a person', answered_at = 1")
    for left in hostile.account.home.glob("handrail.db*"):
        os.chown(left, hostile.account.uid, -1)
    restart(hostile)
    call = shown(hostile)["call"]
    assert call["status"] == "interrupted"
    assert call["allowed_by"] is None
    assert call["terminal_id"] is None
