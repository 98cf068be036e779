"""Timing of repeated work, and the statistics of the samples."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

ROUNDS = 5
"""Repetitions of a measurement. Its figure is their median, which one slow moment of the machine cannot move."""


def alternate(*sides: Callable[[], float], rounds: int = ROUNDS) -> list[list[float]]:
    """The samples of each side, measured in turns (ABAB…), so that a machine that slows down slows all sides."""
    samples = [[side() for side in sides] for _ in range(rounds)]
    return [list(column) for column in zip(*samples, strict=True)]


def alternate_medians(*sides: Callable[[], float], rounds: int = ROUNDS) -> list[float]:
    return [median(column) for column in alternate(*sides, rounds=rounds)]


def time_each(work: Callable[[], object], times: int) -> list[float]:
    """The seconds that each of so many runs of the work takes."""
    samples: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        samples.append(time.perf_counter() - began)
    return samples


def time_p50(work: Callable[[], object], times: int) -> float:
    return percentile(time_each(work, times), 0.5)


def median(samples: Sequence[float]) -> float:
    return statistics.median(samples)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that is at least as large as this share of the samples."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
