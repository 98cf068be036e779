"""When the keeper dies, or a daemon comes from inside: codes are void, none is issued, and a person can mend it."""

import os
import signal
from collections.abc import Callable

import pytest
from tests.support.user_account import Account, Attacker, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def hostile(new_account: Callable[[], Account]) -> Attacker:
    """A daemon whose keeper was killed when a link lay unused; the code of that link is `ids["code"]`."""
    hostile = Attacker(new_account())
    hostile.ids["code"] = hostile.account.link().partition("#code=")[2]
    os.kill(hostile.keeper, signal.SIGKILL)
    until(lambda: hostile.account.handrail("open", "--print").returncode, "the daemon is sealed")
    return hostile


def test_a_link_from_before_is_void(hostile: Attacker) -> None:
    answer = hostile.account.http("POST", "/api/sign-in", body={"code": hostile.ids["code"]})
    assert answer.status == 401


def test_no_link_is_given_to_the_command_line_or_to_a_page(hostile: Attacker) -> None:
    done = hostile.account.handrail("open", "--print")
    assert (done.returncode, "#code=" in done.stdout) == (1, False)
    assert "handrail restart" in done.stderr
    answer = hostile.account.http("POST", "/api/code", hostile.person)
    assert answer.status == 403
    assert "handrail restart" in answer.detail


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_the_command_line_decides_nothing_even_from_outside(hostile: Attacker, verb: str) -> None:
    done = hostile.account.handrail(verb, hostile.ids["approval"])
    assert done.returncode == 1
    assert "The keeper ended unexpectedly" in done.stderr
    assert hostile.asked()["status"] == "open"


def test_a_page_that_was_signed_in_still_decides(hostile: Attacker) -> None:
    path = f"/api/approvals/{hostile.ids['approval']}/answer"
    body = {"answer": "deny", "digest": hostile.ids["digest"], "reason": "seen"}
    assert hostile.account.http("POST", path, hostile.person, body).status == 200


def test_a_person_outside_restarts_it_and_all_is_well_again(hostile: Attacker) -> None:
    done = hostile.account.handrail("restart")
    assert done.returncode == 0, done.stderr
    assert hostile.account.http("GET", "/api/state", hostile.person).status == 401  # its keeper is gone
    bearer = hostile.account.sign_in()
    assert hostile.account.http("GET", "/api/state", bearer).status == 200


def test_a_daemon_from_inside_can_be_ended_from_outside_and_what_waited_still_waits(
    new_account: Callable[[], Account],
) -> None:
    hostile = Attacker(new_account())
    hostile.attack("after_killing_both_and_starting_a_quiet_daemon", [])
    refused = hostile.account.handrail("approve", hostile.ids["approval"])
    assert refused.returncode == 1
    assert "handrail down" in refused.stderr

    ended = hostile.account.handrail("down")
    assert ended.returncode == 0, ended.stderr
    hostile.account.start()
    allowed = hostile.account.handrail("approve", hostile.ids["approval"])
    assert allowed.returncode == 0, allowed.stderr
