"""The weight of a whole call: its risk part by part, and of all reasons those that a person must read.

Owns which reasons stand at the top: those of the parts that make it what it is. How a part is judged is risk.py's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.gate.risk import Assessment, assess
from handrail.store.value import Claim, Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A level, the reasons for that level, and each part by itself, in the order of the claims."""

    level: Risk
    reasons: tuple[str, ...]
    parts: tuple[Assessment, ...]


def weigh(claims: Sequence[Claim]) -> Weight:
    level, parts = assess(claims).level, tuple(assess((claim,)) for claim in claims)
    reasons = dict.fromkeys(reason for part in parts if part.level == level for reason in part.reasons)
    return Weight(level=level, reasons=tuple(reasons), parts=parts)
