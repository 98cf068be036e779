"""The statistics of samples, and the order in which sides are measured."""

from bench.comparison import compare
from bench.samples import alternate, alternate_medians, median, percentile, time_each


def test_a_percentile_is_the_smallest_sample_not_below_that_share() -> None:
    hundred = [float(number) for number in range(100, 0, -1)]
    assert percentile(hundred, 0.99) == 99.0
    assert percentile(hundred, 0.5) == 50.0
    assert percentile([7.0, 3.0], 0.99) == 7.0
    assert percentile([7.0], 0.01) == 7.0


def test_a_median_ignores_one_slow_sample() -> None:
    assert median([1.0, 1.1, 0.9, 1.0, 90.0]) == 1.0


def test_sides_are_measured_in_turns() -> None:
    order: list[str] = []

    def measure(name: str, figure: float) -> float:
        order.append(name)
        return figure

    def ours() -> float:
        return measure("ours", 2.0)

    def peer() -> float:
        return measure("peer", 3.0)

    assert alternate(ours, peer, rounds=3) == [[2.0] * 3, [3.0] * 3]
    assert order == ["ours", "peer"] * 3
    assert alternate_medians(ours, peer, rounds=1) == [2.0, 3.0]


def test_a_comparison_warms_both_sides_up_and_takes_the_median_ratio_of_its_rounds() -> None:
    new, old = iter([99.0, 1.0, 20.0, 3.0]), iter([99.0, 2.0, 40.0, 3.0])

    figure = compare([lambda: next(new), lambda: next(old)], rounds=3)

    assert (figure.ours, figure.peer, figure.ratio) == (3.0, 3.0, 0.5)
    assert figure.note.startswith("3 rounds in turns; new / old p10 0.500, median 0.500, p90 1.000;")


def test_work_is_timed_once_per_run() -> None:
    runs: list[int] = []
    assert len(time_each(lambda: runs.append(1), 4)) == len(runs) == 4
