"""The lines of the bench: their declarations and their results.

A module of the bench declares `MEASUREMENTS`. A measurement declares its lines and yields one figure for each, in order.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Literal

LINE_SECONDS = 900.0
"""Bounds the wait for one line, so that a hang costs that measurement and not the whole run. The longest takes minutes."""

Kind = Literal["times at most", "times at least", "at most"]
Outcome = Literal["ok", "miss", "failed"]


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on our figure (`at most`), or on our figure divided by the peer's (`times …`)."""

    kind: Kind
    bound: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, as declared."""

    title: str
    unit: str
    target: Target


@dataclass(frozen=True, slots=True)
class Figure:
    """The measured value of one line; `peer` is measured in the same minutes, and None for a line without a peer."""

    ours: float
    peer: float | None = None
    note: str = ""
    ratio: float | None = None
    """Ours to the peer's, where it is known better than by a division of the two."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Code that measures one or more lines. `measure` yields a figure per line, as soon as it has it."""

    lines: tuple[Line, ...]
    measure: Callable[[], Generator[Figure]]
    seconds: float = LINE_SECONDS
    """The time within which each line must come."""


@dataclass(frozen=True, slots=True)
class Result:
    """A line with its figure, or with the reason why it has none."""

    group: str
    line: Line
    figure: Figure | None = None
    failure: str = ""

    @property
    def value(self) -> float:
        """The number compared with the target; NaN where a number is missing."""
        if self.figure is None:
            return math.nan
        if self.line.target.kind == "at most":
            return self.figure.ours
        if self.figure.ratio is not None:
            return self.figure.ratio
        return self.figure.ours / self.figure.peer if self.figure.peer else math.nan

    @property
    def outcome(self) -> Outcome:
        """A missing number is a miss; a line without a figure has failed."""
        if self.figure is None:
            return "failed"
        target = self.line.target
        is_reached = (
            self.value >= target.bound if target.kind == "times at least" else self.value <= target.bound
        )
        return "ok" if is_reached else "miss"
