"""How much harm claims could do: the worst one counts, and every reason is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.test_rule import claim, claims

from handrail.gate.risk import assess
from handrail.store.value import Claim, Risk

ORDER: tuple[Risk, ...] = ("low", "medium", "high")


@pytest.mark.parametrize(
    ("claimed", "level", "reason"),
    [
        (claim("read"), "low", "reads in the workspace"),
        (claim("recall"), "low", "reads Handrail's own record"),
        (claim("write"), "medium", "changes a file in the workspace"),
        (claim("run"), "medium", "runs a command with your rights"),
        (claim("write", inside=False), "high", "writes outside the workspace"),
        (claim("run", inside=False), "high", "runs a command outside the workspace"),
        (claim("read", inside=False), "high", "reads outside the workspace"),
        (claim("write", protected=True), "high", "writes a protected place"),
        (claim("read", protected=True), "high", "reads a protected place"),
        (claim("run", protected=True), "high", "runs a command in a protected place"),
        (
            claim("type"),
            "medium",
            "types into a terminal, where aliases and state may change its meaning",
        ),
        (claim("type", inside=False), "high", "types into a terminal of another workspace"),
        (claim("type", protected=True), "high", "types into your own terminal"),
        (claim("stop"), "low", "ends a terminal that agents of this workspace opened"),
        (claim("stop", inside=False), "high", "ends a terminal of another workspace"),
        (claim("stop", protected=True), "high", "ends your own terminal"),
    ],
)
def test_each_claim_has_a_level_and_a_reason_in_words(claimed: Claim, level: Risk, reason: str) -> None:
    found = assess([claimed])
    assert (found.level, found.reasons) == (level, (reason,))


def test_the_worst_comes_first_and_no_reason_comes_twice() -> None:
    found = assess([claim("read"), claim("write"), claim("write", protected=True), claim("write")])
    assert found.level == "high"
    assert found.reasons == (
        "writes a protected place",
        "changes a file in the workspace",
        "reads in the workspace",
    )


def test_nothing_claimed_is_no_risk() -> None:
    assert assess([]).level == "low"


@given(st.lists(claims, max_size=4), claims)
def test_claiming_more_never_lowers_the_risk(few: list[Claim], more: Claim) -> None:
    assert ORDER.index(assess([*few, more]).level) >= ORDER.index(assess(few).level)


@given(st.permutations([claim("read"), claim("write"), claim("run", inside=False), claim("recall")]))
def test_the_order_of_claims_does_not_matter(shuffled: list[Claim]) -> None:
    assert assess(shuffled).level == "high"
    assert assess(shuffled).reasons[0] == "runs a command outside the workspace"
