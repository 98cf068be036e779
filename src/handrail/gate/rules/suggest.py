"""Rules that somebody may want, made from a question.

Owns which rule would have answered it and is general enough to be of use. Suggests nothing for what no rule can allow,
and adds nothing: a person takes a suggestion, changes it, or leaves it.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handrail.gate.rules.alike import commonly
from handrail.gate.rules.builtin import FLOORS, HIGH, UNTRUSTED
from handrail.gate.rules.general import pattern_of
from handrail.gate.rules.matching import FILES, Matcher
from handrail.gate.rules.pattern import BadPattern, spell_path
from handrail.gate.rules.rule import Policy
from handrail.gate.rules.wording import in_words
from handrail.store.value import Caller, Claim, Effect, Rule

MOST = 12
"""Suggestions for one question; a card has no room for more."""
_OPEN = frozenset({"default policy", UNTRUSTED.name, HIGH.name})
"""Verdicts that a rule would have replaced."""
_FLOORS = frozenset(each.name for each in FLOORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """A rule, not made yet."""

    rule: Rule
    """Without an id."""
    words: str
    claims: tuple[int, ...] = ()
    """Those of the question that it would decide."""
    answers: int = 0
    """How often a person already said so, one by one."""


def suggest(
    tool: str, claims: Sequence[Claim], caller: Caller, policy: Policy, effect: Effect = "allow"
) -> list[Suggested]:
    """What would decide a question like this one the next time; as few rules as possible, general ones."""
    verdicts = policy.decide(tool, claims, caller).verdicts
    if any(each.rule in _FLOORS for each in verdicts):
        return []  # whatever is allowed of it, the question would be put again
    undecided = [each.claim for each in verdicts if each.rule in _OPEN]
    found: list[Suggested] = []
    covered: set[int] = set()
    for place in undecided:
        if place in covered or len(found) == MOST:
            continue
        for rule in _rules(tool, claims[place], policy, effect):
            fits = _fitting(rule, tool, claims, caller, policy, undecided)
            if place in fits:
                covered.update(fits)
                found.append(Suggested(rule=rule, words=in_words(rule), claims=fits))
    return found


def _fitting(
    rule: Rule, tool: str, claims: Sequence[Claim], caller: Caller, policy: Policy, among: Sequence[int]
) -> tuple[int, ...]:
    """The claims it would decide; none when what it is made of cannot be written as a pattern."""
    try:
        matcher = Matcher(rule, policy.root, policy.home)
    except BadPattern:
        return ()
    return tuple(place for place in among if matcher.matches(tool, claims[place], caller))


def _rules(tool: str, claim: Claim, policy: Policy, effect: Effect) -> Iterator[Rule]:
    if policy.root is None:
        return
    if claim.action == "run" and claim.words:
        if (command := pattern_of(claim)) is not None:
            yield _rule(effect, policy.root, tool=commonly(tool, claim.action), command=command)
    elif claim.action == "connect":
        yield _rule(effect, policy.root, host=claim.resource)
    elif claim.action in FILES:
        try:
            path = _path(claim, policy.root)
        except BadPattern:
            return
        # Who lets one tool write here means the others too; to delete, one must say so.
        yield _rule(effect, policy.root, tool=tool if claim.action == "delete" else None, path=path)


def _path(claim: Claim, root: str) -> str:
    """The folder it lies in, with all below; or itself, where that folder would be too much."""
    if not claim.inside:
        return spell_path(claim.resource)
    below = spell_path(posixpath.relpath(claim.resource, root))
    folder = posixpath.dirname(below)
    if claim.action == "delete" or not folder:
        return below
    return f"{folder}/**"


def _rule(
    effect: Effect,
    workspace: str,
    *,
    tool: str | None = None,
    command: str | None = None,
    path: str | None = None,
    host: str | None = None,
) -> Rule:
    return Rule(
        id="",
        effect=effect,
        tool=tool,
        command=command,
        path=path,
        host=host,
        scope="project",
        workspace=workspace,
    )
