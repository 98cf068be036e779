"""A rule's examples: what it must match, and what it must not.

Owns checking them, as a call like the example would be judged. It does not know where the rule is written (making.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from handrail.gate.rules.alike import COMMANDS
from handrail.gate.rules.matching import Matcher
from handrail.gate.rules.wording import in_words
from handrail.gate.shell.shell import parse
from handrail.store.value import Action, Caller, Claim, Rule

_NOBODY = Caller(door="cli", client="", key="", workspace=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a rule is to hold."""

    root: str | None
    """The real path of the folder that relative paths start from."""
    home: str

    @property
    def base(self) -> str:
        """Any folder will do for the examples of a rule that holds in all of them."""
        return self.root or "/workspace"


def unmet(matcher: Matcher, ground: Ground) -> str:
    """The first example that does not hold, and what was found, as a sentence; empty when all do."""
    rule = matcher.rule
    examples = [*((each, True) for each in rule.match), *((each, False) for each in rule.not_match)]
    if examples and rule.command is None and rule.path is None and rule.host is None:
        return "A rule about all of a tool takes no examples. Remove `match` and `not_match`."
    told = (_judged(matcher, example, wanted, ground) for example, wanted in examples)
    return next((sentence for sentence in told if sentence), "")


def _judged(matcher: Matcher, example: str, wanted: bool, ground: Ground) -> str:
    claims = list(_claims_of(matcher.rule, example, ground))
    tool = matcher.rule.tool or COMMANDS
    asker = replace(_NOBODY, key=matcher.rule.session or "", client=matcher.rule.agent or "")
    fits = [matcher.matches(tool, claim, asker, matcher.rule.server) for claim in claims]
    covered = any(fits) and (all(fits) or matcher.rule.effect != "allow")
    if covered == wanted:
        return ""
    listed, does = ("match", "does not match") if wanted else ("not_match", "matches")
    told = _found(matcher.rule, claims, fits)
    return f"`{listed}` has the example `{example}`, but the rule {does} it: {told}"


def _claims_of(rule: Rule, example: str, ground: Ground) -> Iterable[Claim]:
    """What a call as in the example would claim."""
    if rule.command is not None:
        line = parse(example)
        for part in line.parts:
            yield Claim(action="run", resource=part.text, inside=True, words=part.words)
        for opaque in line.opaque:
            yield Claim(
                action="run", resource=opaque.text, inside=True, words=opaque.words, opaque=opaque.why
            )
    elif rule.path is not None:
        base = "" if example.startswith("/") else f"{ground.base}/"
        yield _example("write", ground.home + example[1:] if example.startswith("~/") else base + example)
    elif rule.host is not None:
        yield _example("connect", example)


def _example(action: Action, resource: str) -> Claim:
    return Claim(action=action, resource=resource, inside=True)


def _found(rule: Rule, claims: list[Claim], fits: list[bool]) -> str:
    if not claims:
        return "there is no command in it."
    told = [_told(claim, fit) for claim, fit in zip(claims, fits, strict=True)]
    return f"{'; '.join(told)}. The rule is about {in_words(rule)}."


def _told(claim: Claim, fit: bool) -> str:
    if claim.opaque:
        return f"`{claim.resource}` is not fully understood ({claim.opaque.rstrip('.')})"
    return f"`{claim.resource}` {'fits' if fit else 'does not fit'}"
