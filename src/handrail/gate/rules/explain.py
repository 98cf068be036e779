"""How a decision came about: every step of the evaluation in order, and which of them decided.

Owns the chain that a tester shows. It decides nothing itself: the verdicts are the policy's own (rule.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handrail.gate.rules.builtin import ALLOWS, FLOORS, LATE, Builtin, Case, default_of
from handrail.gate.rules.matching import Matcher
from handrail.gate.rules.rule import Decision, Policy
from handrail.gate.rules.wording import in_words
from handrail.store.value import Caller, Claim, Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rule, or a built-in one, as it was looked at."""

    name: str
    words: str
    effect: Effect | None
    """None when it applies to nothing here."""
    parts: tuple[int, ...]
    """The claims it applies to, whether or not something before it decided them."""
    decides: bool
    """Some claim's verdict is its."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A decision and the chain that led to it."""

    decision: Decision
    chain: tuple[Step, ...]


def explain(
    policy: Policy, tool: str, claims: Sequence[Claim], caller: Caller, server: str | None = None
) -> Explained:
    decision = policy.decide(tool, claims, caller, server)
    cases = [Case(claim, caller, policy.here) for claim in claims]
    deciding = {verdict.rule for verdict in decision.verdicts}

    def step(name: str, words: str, effect: Effect, applies: Callable[[Case], bool]) -> Step:
        parts = tuple(place for place, case in enumerate(cases) if applies(case))
        return Step(
            name=name,
            words=words,
            effect=effect if parts else None,
            parts=parts,
            decides=bool(parts) and name in deciding,
        )

    def builtin(each: Builtin) -> Step:
        return step(each.name, each.words, each.effect, each.applies)

    def rules(effect: Effect) -> list[Step]:
        return [
            step(
                each.rule.id,
                in_words(each.rule),
                effect,
                lambda case, each=each: each.matches(tool, case.claim, case.caller, server),
            )
            for each in _matchers(policy, effect)
        ]

    built_in = [builtin(each) for each in (*ALLOWS, *LATE, default_of(policy.here))]
    floors = [builtin(each) for each in FLOORS]
    chain = (*rules("deny"), *floors, *rules("ask"), *rules("allow"), *built_in)
    return Explained(decision=decision, chain=chain)


def _matchers(policy: Policy, effect: Effect) -> list[Matcher]:
    return [Matcher(rule, policy.root, policy.home) for rule in policy.rules if rule.effect == effect]
