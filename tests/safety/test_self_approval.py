"""A command that Handrail runs is never taken for a person, whatever it does to those above it.

Each attack runs for real, as an ordinary user, through the gate of a real daemon. Beside it stands the control: the
same verbs, used from outside by the same user, work.
"""

import json
from collections.abc import Callable

import pytest
from tests.safety.attack import postures, verbs, web
from tests.support.user_account import Account, Attacker, AttackResult, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

After = Callable[[str], tuple[Attacker, AttackResult]]


@pytest.fixture(scope="module")
def after(new_account: Callable[[], Account]) -> After:
    """The loot of an attack with every verb, and the home it left; each posture is taken once."""
    taken: dict[str, tuple[Attacker, AttackResult]] = {}

    def attacked(posture: str) -> tuple[Attacker, AttackResult]:
        if posture not in taken:
            hostile = Attacker(new_account())
            tries = [*verbs.TRIES, *web.TRIES, *postures.TRIES]
            taken[posture] = hostile, hostile.attack(posture, tries)
        return taken[posture]

    return attacked


@pytest.mark.parametrize("posture", postures.ALL)
@pytest.mark.parametrize("verb", verbs.TRIES)
def test_a_command_is_refused_every_verb_of_a_person_and_sent_to_the_page(
    after: After, posture: str, verb: str
) -> None:
    got = after(posture)[1].of(verb)
    assert got.code != 0
    if verb in ("restart", "down") and got.said.startswith("The keeper (process"):
        return  # these ask the keeper first, and one that was stopped, or that stands in for it, does not answer
    assert "Do it on the page" in got.said


@pytest.mark.parametrize("posture", postures.ALL)
@pytest.mark.parametrize("bearer", web.TRIES)
def test_no_bearer_that_a_command_can_have_answers_an_approval(
    after: After, posture: str, bearer: str
) -> None:
    got = after(posture)[1].of(bearer)
    assert got.code != 0, got.said


@pytest.mark.parametrize("posture", [name for name in postures.ALL if "starting" in name])
def test_a_daemon_that_a_command_starts_prints_no_link(after: After, posture: str) -> None:
    assert after(posture)[1].of("a printed link").code != 0


def test_a_daemon_that_a_command_starts_says_that_it_takes_nobody_for_a_person(after: After) -> None:
    said = after("after_killing_both_and_starting_a_daemon")[1].of("a printed link").said
    assert "takes nobody for a person" in said


@pytest.mark.parametrize("posture", postures.ALL)
def test_the_question_is_still_open_when_the_attack_is_over(after: After, posture: str) -> None:
    assert after(posture)[0].asked()["status"] == "open"


def test_every_posture_is_what_it_says(after: After) -> None:
    """Without this, an attack that never left its warden could pass for one that did."""
    for posture in postures.ALL:
        hostile, loot = after(posture)
        at_home = hostile.keeper in loot.above
        gone = "keeper" in posture or "both" in posture
        assert at_home is not gone, posture
        assert (loot.above[0] == hostile.keeper) is (posture == "after_killing_its_warden")


@pytest.fixture(scope="module")
def outside(new_account: Callable[[], Account]) -> Attacker:
    return Attacker(new_account())


@pytest.mark.parametrize("verb", ["approve", "deny", "cancel", "complete"])
def test_from_outside_the_same_user_may_decide(outside: Attacker, verb: str) -> None:
    call = outside.account.ask(outside.agent)["call_id"]
    (asked,) = [
        row
        for row in outside.account.http("GET", "/api/approvals?open=true", outside.person).json
        if row["call_id"] == call
    ]
    done = outside.account.handrail(verb, asked["id"] if verb in ("approve", "deny") else call)
    assert done.returncode == 0, done.stderr
    assert outside.account.approvals(outside.person)[asked["id"]] != "open"

    def has_ended() -> bool:
        told = outside.account.http("GET", f"/api/calls/{call}", outside.person).json
        return told["status"] not in ("waiting", "running")

    until(has_ended, "the call ends")  # while it is open, the next question would be taken for the same call


def test_from_outside_the_same_user_gets_a_link_and_a_credential(outside: Attacker) -> None:
    assert "#code=" in outside.account.link()
    bearer = outside.account.credential()
    assert outside.account.call(bearer, "execute_command", command="echo hi")["output"].strip() == "hi"
    made = json.loads(outside.account.handrail("credentials", "--json").stdout)[-1]
    assert outside.account.handrail("credentials", "revoke", made["id"]).returncode == 0


def test_from_outside_the_same_user_restarts_and_ends_it(new_account: Callable[[], Account]) -> None:
    account = new_account()
    account.start()
    before = account.pid
    assert account.handrail("restart").returncode == 0
    assert account.pid != before
    assert account.handrail("down").returncode == 0
    assert account.about == {}
