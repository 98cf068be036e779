"""Explanations for people: the steps of one decision, and all rules in evaluation order.

It decides nothing: the verdicts come from policy.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from handrail.gate.rules.matching import (
    FolderState,
    Matcher,
    OriginRule,
    explain_lapse,
    find_arguments,
    find_server,
)
from handrail.gate.rules.policy import (
    ALLOWS,
    FLOORS,
    LATE,
    Builtin,
    ClaimCase,
    Decision,
    FolderSettings,
    Policy,
    default_of,
    describe_rule,
)
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, Effect, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One evaluation step: a rule or a built-in rule."""

    name: str
    words: str
    effect: Effect | None
    """None if it applies to no claim."""
    parts: tuple[int, ...]
    """Positions of the claims it applies to, even if an earlier step decided them."""
    decides: bool
    """Whether the verdict about some claim is from this step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision and its evaluation steps, in order."""

    decision: Decision
    chain: tuple[Step, ...]


def explain(
    policy: Policy, tool: str, claims: Sequence[Claim], caller: Caller, server: str | None = None
) -> Explanation:
    server, arguments = find_server(claims) or server, find_arguments(claims)
    decision = policy.decide(tool, claims, caller, server)
    cases = [ClaimCase(claim, caller, policy.here) for claim in claims]
    deciding = {verdict.rule for verdict in decision.verdicts}

    def step(name: str, words: str, effect_on: Callable[[ClaimCase], Effect | None]) -> Step:
        effects: list[Effect | None] = [effect_on(case) for case in cases]
        parts = tuple(place for place, effect in enumerate(effects) if effect is not None)
        return Step(
            name=name,
            words=words,
            effect=next((each for each in effects if each is not None), None),
            parts=parts,
            decides=bool(parts) and name in deciding,
        )

    def builtin(each: Builtin) -> Step:
        return step(each.name, each.words, lambda case: each.effect if each.applies(case) else None)

    def rules(effect: Effect) -> list[Step]:
        return [
            step(
                each.rule.id,
                describe_rule(each.rule),
                lambda case, each=each: each.effect_on(tool, case.claim, case.caller, server, arguments),
            )
            for each in _matchers(policy, effect)
        ]

    built_in = [builtin(each) for each in (*ALLOWS, *LATE, default_of(policy.here))]
    floors = [builtin(each) for each in FLOORS]
    chain = (*rules("deny"), *floors, *rules("ask"), *rules("allow"), *built_in)
    return Explanation(decision=decision, chain=chain)


def _matchers(policy: Policy, effect: Effect) -> list[Matcher]:
    return [Matcher(rule, policy.root, policy.home) for rule in policy.rules if rule.effect == effect]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRule:
    """A rule and whether it is in force."""

    rule: Rule
    words: str
    builtin: bool
    removable: bool
    """Added through an answer or the page. A rule from a file is removed in that file."""
    in_force: bool
    says: str
    """Why it is not in force, as a sentence; empty if it is."""


def list_rules(
    known: Iterable[OriginRule], here_of: Callable[[Rule], FolderState], point: FolderSettings
) -> list[ListedRule]:
    """All rules in evaluation order; `here_of` gives the folder in which to check whether a rule is in force."""
    rules = [_listed(each, here_of(each.rule)) for each in known]
    return [
        *_of(rules, "deny"),
        *(_builtin(each) for each in FLOORS),
        *_of(rules, "ask"),
        *_of(rules, "allow"),
        *(_builtin(each) for each in ALLOWS),
        *(_late(each, point) for each in LATE),
        _builtin(default_of(point)),
    ]


def _of(rules: list[ListedRule], effect: Effect) -> Iterator[ListedRule]:
    return (each for each in rules if each.rule.effect == effect)


def _listed(known: OriginRule, here: FolderState) -> ListedRule:
    says = explain_lapse(known.rule, known.origin, here)
    return ListedRule(
        rule=known.rule,
        words=describe_rule(known.rule),
        builtin=False,
        removable=known.origin == "answer",
        in_force=not says,
        says=says,
    )


def _builtin(builtin: Builtin) -> ListedRule:
    return ListedRule(
        rule=builtin.rule, words=builtin.words, builtin=True, removable=False, in_force=True, says=""
    )


def _late(builtin: Builtin, point: FolderSettings) -> ListedRule:
    says = builtin.idle(point)
    return ListedRule(
        rule=builtin.rule,
        words=builtin.words,
        builtin=True,
        removable=False,
        in_force=not says,
        says=says,
    )
