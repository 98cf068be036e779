"""Risk: how much harm a call's claims could do, with reasons in words.

A pure reading of claims. It decides nothing (rule.py) and never looks at an agent's prose.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.store.event import Claim, Risk

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
        return "high", f"{_VERB[claim.action]}{' in' if claim.action == 'run' else ''} a protected place"
    if not claim.inside:
        return "high", f"{_VERB[claim.action]} outside the workspace"
    match claim.action:
        case "recall":
            return "low", "reads Handrail's own record"
        case "read":
            return "low", "reads in the workspace"
        case "write":
            return "medium", "changes a file in the workspace"
        case "run":
            return "medium", "runs a command with your rights"


_VERB = {"read": "reads", "recall": "reads", "write": "writes", "run": "runs a command"}
