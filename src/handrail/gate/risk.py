"""Risk: how much harm a call's claims could do, with reasons in words.

A pure reading of claims. It decides nothing (rule.py) and never looks at an agent's prose.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.store.value import Action, Claim, Risk

_ORDER: tuple[Risk, ...] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A level and the reasons for it, worst first."""

    level: Risk
    reasons: tuple[str, ...]


def assess(claims: Sequence[Claim]) -> Assessment:
    told = dict.fromkeys(_one(claim) for claim in claims)
    found = sorted(told, key=lambda item: -_ORDER.index(item[0]))
    level = found[0][0] if found else "low"
    return Assessment(level=level, reasons=tuple(reason for _, reason in found))


def _one(claim: Claim) -> tuple[Risk, str]:
    if claim.protected:
        return "high", _PROTECTED[claim.action]
    if not claim.inside:
        return "high", _OUTSIDE[claim.action]
    return _INSIDE[claim.action]


_INSIDE: dict[Action, tuple[Risk, str]] = {
    "recall": ("low", "reads Handrail's own record"),
    "read": ("low", "reads in the workspace"),
    "stop": ("low", "ends a terminal that agents of this workspace opened"),
    "write": ("medium", "changes a file in the workspace"),
    "run": ("medium", "runs a command with your rights"),
    "type": ("medium", "types into a terminal, where aliases and state may change its meaning"),
}
_OUTSIDE: dict[Action, str] = {
    "recall": "reads outside the workspace",
    "read": "reads outside the workspace",
    "stop": "ends a terminal of another workspace",
    "write": "writes outside the workspace",
    "run": "runs a command outside the workspace",
    "type": "types into a terminal of another workspace",
}
_PROTECTED: dict[Action, str] = {
    "recall": "reads a protected place",
    "read": "reads a protected place",
    "stop": "ends your own terminal",
    "write": "writes a protected place",
    "run": "runs a command in a protected place",
    "type": "types into your own terminal",
}
"""Of terminals, a person's own are what is protected."""
