"""What the past says about rules: how many questions one would have spared, and which answers repeat.

Owns reading old questions as a rule would have met them. It does not fetch them (store/), and changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from handrail.gate.rules.rule import Decision, Policy
from handrail.gate.rules.suggest import Suggested, suggest
from handrail.store.actor import Actor
from handrail.store.value import AnswerKind, Caller, Claim, Rule

OFTEN = 3
"""Answers that are alike before a rule is suggested: two may be chance."""
MOST_EXAMPLES = 5
_MOST_SUGGESTED = 10

PolicyOf = Callable[[Caller], Policy]


class Asked(Protocol):
    """A call of the past: a question, or one that was never put."""

    @property
    def tool(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def claims(self) -> tuple[Claim, ...]: ...


class Prompt(Asked, Protocol):
    """A question of the past."""

    @property
    def answer(self) -> AnswerKind | None: ...
    @property
    def by(self) -> Actor | None: ...
    @property
    def edited(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a rule would have done."""

    prompts: int
    decided: int
    """Of the questions, how many nobody would have been asked."""
    calls: int
    matches: int
    """Of the calls, how many it is about, in whole or in part."""
    examples: tuple[str, ...]
    """Some of what it is about."""


def judge(
    rule: Rule,
    prompts: Sequence[Prompt],
    calls: Sequence[Asked],
    policy_with: Callable[[Caller, Rule], Policy],
) -> Judged:
    """Hold a rule against the past; `policy_with` is what would hold for a caller if the rule were there."""
    policies = _once(lambda caller: policy_with(caller, rule))
    matched = [call for call in calls if _had_a_part(rule, call, policies)]
    asked = [prompt for prompt in prompts if _had_a_part(rule, prompt, policies)]
    decided = [each for each in asked if _decide(each, policies).effect != "ask"]
    titles = dict.fromkeys(each.title for each in (*asked, *matched))
    return Judged(
        prompts=len(prompts),
        decided=len(decided),
        calls=len(calls),
        matches=len(matched),
        examples=tuple(titles)[:MOST_EXAMPLES],
    )


def repeated(prompts: Sequence[Prompt], policy_of: PolicyOf) -> list[Suggested]:
    """Rules for what a person keeps answering alike, most often first; none for what was also answered otherwise."""
    policies = _once(policy_of)
    told: dict[Rule, _Told] = {}
    for prompt in prompts:
        if prompt.answer is None or prompt.edited or (prompt.by is not None and prompt.by.rule is not None):
            continue
        for each in suggest(prompt.tool, prompt.claims, prompt.caller, policies(prompt.caller)):
            told.setdefault(each.rule, _Told(each)).answers.append(prompt.answer)
    found = [each for each in told.values() if each.agreed]
    found.sort(key=lambda each: -len(each.answers))
    return [each.suggested for each in found[:_MOST_SUGGESTED]]


@dataclass(slots=True)
class _Told:
    """What people said to questions that one rule would have answered."""

    first: Suggested
    answers: list[AnswerKind] = field(default_factory=list[AnswerKind])

    @property
    def agreed(self) -> bool:
        return len(self.answers) >= OFTEN and len(set(self.answers)) == 1

    @property
    def suggested(self) -> Suggested:
        rule = replace(self.first.rule, effect=self.answers[0])
        return replace(self.first, rule=rule, claims=(), answers=len(self.answers))


def _decide(asked: Asked, policies: PolicyOf) -> Decision:
    return policies(asked.caller).decide(asked.tool, asked.claims, asked.caller)


def _had_a_part(rule: Rule, asked: Asked, policies: PolicyOf) -> bool:
    return rule.id in _decide(asked, policies).rules


def _once(policy_of: PolicyOf) -> PolicyOf:
    """The same for every caller of a folder, made once: a session's rules are told apart when they decide."""
    made: dict[str | None, Policy] = {}

    def policies(caller: Caller) -> Policy:
        if caller.workspace not in made:
            made[caller.workspace] = policy_of(caller)
        return made[caller.workspace]

    return policies
