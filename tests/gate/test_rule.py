"""What is allowed, asked and refused: a pure decision about claims."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.scene import caller

from handrail.gate.rule import Effect, Policy
from handrail.store.value import Action, Claim

ACTIONS: tuple[Action, ...] = get_args(Action)
STRICTNESS: tuple[Effect, ...] = ("allow", "ask", "deny")

claims = st.builds(
    Claim,
    action=st.sampled_from(ACTIONS),
    resource=st.text(max_size=5),
    inside=st.booleans(),
    protected=st.booleans(),
)


def claim(action: Action, *, inside: bool = True, protected: bool = False) -> Claim:
    return Claim(action=action, resource="/w/a", inside=inside, protected=protected)


@pytest.mark.parametrize(
    ("claimed", "effect", "rule"),
    [
        (claim("read"), "allow", "reads in the workspace"),
        (claim("recall"), "allow", "own record"),
        (claim("read", inside=False), "ask", "default policy"),
        (claim("read", protected=True), "ask", "default policy"),
        (claim("write"), "ask", "default policy"),
        (claim("run"), "ask", "default policy"),
        (claim("type"), "ask", "default policy"),
        (claim("type", protected=True), "ask", "default policy"),
        (claim("stop"), "allow", "own terminals"),
        (claim("stop", inside=False), "ask", "default policy"),
        (claim("stop", protected=True), "ask", "default policy"),
    ],
)
def test_reads_in_the_workspace_and_ends_of_own_terminals_are_allowed_and_everything_else_asks(
    claimed: Claim, effect: Effect, rule: str
) -> None:
    decision = Policy().decide([claimed], caller())
    assert (decision.effect, decision.rule) == (effect, rule)
    assert decision.why.endswith(".")


def test_one_claim_that_asks_makes_the_whole_call_ask() -> None:
    assert Policy().decide([claim("read"), claim("write")], caller()).effect == "ask"
    assert Policy().decide([claim("recall"), claim("run")], caller()).effect == "ask"


def test_without_a_workspace_everything_but_our_own_record_asks() -> None:
    nowhere = caller(workspace=None)
    assert Policy(default="allow").decide([claim("read")], nowhere).effect == "ask"
    assert Policy().decide([claim("recall")], nowhere).effect == "allow"


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_the_default_policy_decides_what_no_rule_matches(default: Effect) -> None:
    decision = Policy(default=default).decide([claim("write")], caller())
    assert (decision.effect, decision.rule) == (default, "default policy")


@pytest.mark.parametrize(
    "claimed",
    [
        claim("write", inside=False),
        claim("read", protected=True),
        claim("run", inside=False),
        claim("type", inside=False),
        claim("type", protected=True),
        claim("stop", protected=True),
    ],
)
def test_high_risk_asks_even_when_everything_is_approved_by_itself(claimed: Claim) -> None:
    decision = Policy(default="allow").decide([claimed], caller())
    assert (decision.effect, decision.rule) == ("ask", "high risk")


@given(st.lists(claims, min_size=1, max_size=4), claims, st.sampled_from(STRICTNESS), st.booleans())
def test_claiming_more_never_lowers_a_decision(
    few: list[Claim], more: Claim, default: Effect, placed: bool
) -> None:
    who = caller(workspace="/w" if placed else None)
    before = Policy(default=default).decide(few, who).effect
    after = Policy(default=default).decide([*few, more], who).effect
    assert STRICTNESS.index(after) >= STRICTNESS.index(before)


@given(st.sampled_from(STRICTNESS), st.sampled_from(STRICTNESS))
def test_policies_that_decide_differently_have_different_versions(one: Effect, other: Effect) -> None:
    assert (Policy(default=one).version == Policy(default=other).version) == (one == other)
