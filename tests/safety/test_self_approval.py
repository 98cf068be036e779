"""A command that Handrail runs never gets a person's power: not by a verb, a socket, a file, /proc or a bearer.

Each attack runs for real, as an ordinary user, through the gate of a real daemon. Beside each stands a control: the
same thing, done from outside by the same user, works.
"""

from collections.abc import Callable

import pytest
from tests.safety import attack
from tests.safety.account import Account
from tests.safety.hostile import Hostile, Loot

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

New = Callable[..., Account]


@pytest.fixture(scope="module")
def after(new_account: New) -> Callable[[str], tuple[Hostile, Loot]]:
    """The loot of an attack with every verb of a person, and the home it left; each posture is taken once."""
    taken: dict[str, tuple[Hostile, Loot]] = {}

    def attacked(posture: str) -> tuple[Hostile, Loot]:
        if posture not in taken:
            hostile = Hostile(new_account())
            tries = [*attack.VERBS, *attack.HTTP, *attack.AT_START]
            taken[posture] = hostile, hostile.attack(posture, tries)
        return taken[posture]

    return attacked


@pytest.mark.parametrize("posture", attack.POSTURES)
@pytest.mark.parametrize("verb", attack.VERBS)
def test_a_command_is_refused_every_verb_of_a_person(
    after: Callable[[str], tuple[Hostile, Loot]], posture: str, verb: str
) -> None:
    got = after(posture)[1].of(verb)
    assert got.code != 0
    assert "page" in got.said


@pytest.mark.parametrize("posture", attack.POSTURES)
@pytest.mark.parametrize("bearer", attack.HTTP)
def test_no_bearer_that_a_command_has_answers_an_approval(
    after: Callable[[str], tuple[Hostile, Loot]], posture: str, bearer: str
) -> None:
    assert after(posture)[1].of(bearer).code != 0


@pytest.mark.parametrize("posture", [name for name in attack.POSTURES if "starting" in name])
def test_a_daemon_that_a_command_starts_prints_no_link(
    after: Callable[[str], tuple[Hostile, Loot]], posture: str
) -> None:
    assert after(posture)[1].of("a printed link").code != 0


@pytest.mark.parametrize("posture", attack.POSTURES)
def test_the_question_is_still_open_when_the_attack_is_over(
    after: Callable[[str], tuple[Hostile, Loot]], posture: str
) -> None:
    assert after(posture)[0].asked()["status"] == "open"
