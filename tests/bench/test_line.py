"""When a line reaches its target, misses it, or has failed."""

import math

from bench.line import Figure, Line, Outcome, Result, Target


def judge(target: Target, ours: float, peer: float | None = None) -> Outcome:
    return Result("group", Line("line", "ms", target), Figure(ours, peer)).outcome


def test_a_line_is_ok_up_to_its_bound_and_a_miss_beyond() -> None:
    assert judge(Target("at most", 12.0), 12.0) == "ok"
    assert judge(Target("at most", 12.0), 12.1) == "miss"
    assert judge(Target("times at most", 1.5), 3.0, 2.0) == "ok"
    assert judge(Target("times at most", 1.5), 3.1, 2.0) == "miss"
    assert judge(Target("times at least", 0.8), 80.0, 100.0) == "ok"
    assert judge(Target("times at least", 0.8), 79.0, 100.0) == "miss"


def test_a_missing_number_is_a_miss() -> None:
    assert judge(Target("times at most", 1.5), 1.0, None) == "miss"
    assert judge(Target("times at least", 0.8), 1.0, 0.0) == "miss"
    assert judge(Target("at most", 12.0), math.nan) == "miss"


def test_a_line_without_a_figure_has_failed() -> None:
    result = Result("group", Line("line", "ms", Target("at most", 1.0)), failure="no browser")
    assert result.outcome == "failed"
    assert math.isnan(result.value)


def test_a_measured_ratio_counts_instead_of_the_quotient() -> None:
    line = Line("line", "ms", Target("times at most", 1.05))
    assert Result("group", line, Figure(3.0, 2.0, ratio=1.01)).outcome == "ok"
