"""All rules in the order of evaluation, built-in ones among them, for people to look at."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from handrail.gate.rules.builtin import ALLOWS, FLOORS, LATE, Builtin, Standpoint, default_of
from handrail.gate.rules.force import Here, Known, lapse
from handrail.gate.rules.wording import in_words
from handrail.store.value import Effect, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A rule, and whether it holds."""

    rule: Rule
    words: str
    builtin: bool
    removable: bool
    """Made by an answer or on a page; those in files are removed there."""
    in_force: bool
    says: str
    """Why it does not hold, as a sentence; empty when it does."""


def listed(known: Iterable[Known], here_of: Callable[[Rule], Here], point: Standpoint) -> list[Listed]:
    """In the order in which they are evaluated; `here_of` says where a rule is looked at."""
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


def _of(rules: list[Listed], effect: Effect) -> Iterator[Listed]:
    return (each for each in rules if each.rule.effect == effect)


def _listed(known: Known, here: Here) -> Listed:
    says = lapse(known.rule, known.origin, here)
    return Listed(
        rule=known.rule,
        words=in_words(known.rule),
        builtin=False,
        removable=known.origin == "answer",
        in_force=not says,
        says=says,
    )


def _builtin(builtin: Builtin) -> Listed:
    return Listed(
        rule=builtin.rule, words=builtin.words, builtin=True, removable=False, in_force=True, says=""
    )


def _late(builtin: Builtin, point: Standpoint) -> Listed:
    says = builtin.idle(point)
    return Listed(
        rule=builtin.rule,
        words=builtin.words,
        builtin=True,
        removable=False,
        in_force=not says,
        says=says,
    )
