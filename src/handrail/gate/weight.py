"""The weight of a call: its risk as a whole and part by part, as people are shown it. How either is judged is risk.py's."""

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
    whole = assess(claims)
    parts = tuple(assess((claim,)) for claim in claims)
    return Weight(level=whole.level, reasons=whole.reasons, parts=parts)
