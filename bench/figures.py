"""The arithmetic of the bench: samples into figures, figures into lines that hold or miss.

Owns medians, percentiles, and what it means to reach a target. Does not know what is measured or how a line is shown.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

ROUNDS = 5
"""Repetitions of each measurement; its figure is their median, which one bad moment of the machine cannot move."""

Kind = Literal["times at most", "times at least", "at most"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a line must reach: a bound on ours, or on how many times the peer's it is."""

    kind: Kind
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table."""

    what: str
    ours: float
    peer: float | None
    """Measured in the same run; None where nobody else does what is measured."""
    unit: str
    target: Target
    note: str = ""

    @property
    def value(self) -> float:
        """What is held against the target."""
        if self.target.kind == "at most":
            return self.ours
        return self.ours / self.peer if self.peer else math.nan

    @property
    def held(self) -> bool:
        """Not held when there is nothing to compare: a figure that could not be had is a miss."""
        if self.target.kind == "times at least":
            return self.value >= self.target.bound
        return self.value <= self.target.bound


def median(samples: Sequence[float]) -> float:
    return statistics.median(samples)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that is at least as large as this share of them."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def alternate(
    ours: Callable[[], float], peer: Callable[[], float], rounds: int = ROUNDS
) -> tuple[float, float]:
    """Medians of both, measured in turns, so that a machine that slows down slows both."""
    pairs = [(ours(), peer()) for _ in range(rounds)]
    return median([mine for mine, _ in pairs]), median([theirs for _, theirs in pairs])
