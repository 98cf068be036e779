"""The chain of a decision: every step in order, and the ones that decided are the policy's own verdicts."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.gate.rules.test_policy import law, some_claims, some_rules
from tests.support.policy_values import ONE, policy, rule, runs

from handrail.gate.rules.explanation import explain
from handrail.store.values import Claim, Rule


def test_a_chain_shows_what_was_looked_at_in_order_and_what_decided() -> None:
    held = policy(
        rule("allow", "r1", command="git"),
        rule("ask", "r2", command="git push"),
        rule("deny", "r3", command="npm"),
    )
    found = explain(held, "execute_command", runs("git status && git push"), ONE)
    assert (found.decision.effect, found.decision.rule) == ("ask", "r2")
    assert [(step.name, step.effect, step.parts, step.decides) for step in found.chain] == [
        ("r3", None, (), False),
        ("protected place", None, (), False),
        ("not understood", None, (), False),
        ("no workspace", None, (), False),
        ("r2", "ask", (1,), True),
        ("r1", "allow", (0, 1), True),
        ("own record", None, (), False),
        ("own notes", None, (), False),
        ("reads in the workspace", None, (), False),
        ("server resources", None, (), False),
        ("own terminals", None, (), False),
        ("reading commands", None, (), False),
        ("untrusted folder", None, (), False),
        ("low risk", None, (), False),
        ("high risk", None, (), False),
        ("default policy", "ask", (0, 1), False),
    ]
    assert all(step.words for step in found.chain)


@given(st.lists(some_claims, min_size=1, max_size=3), st.lists(some_rules, max_size=4), law)
def test_the_first_step_that_applies_to_a_claim_is_its_verdict(
    claims: list[Claim], rules: list[Rule], settings: dict[str, Any]
) -> None:
    found = explain(policy(*rules, **settings), "execute_command", claims, ONE)
    for verdict in found.decision.verdicts:
        first = next(step for step in found.chain if verdict.claim in step.parts)
        assert (first.name, first.effect) == (verdict.rule, verdict.effect)
        assert first.decides
