"""What the bench makes of its samples."""

import math

from bench.figures import Line, Target, alternate, median, percentile


def line(target: Target, ours: float, peer: float | None = None) -> Line:
    return Line(what="it", ours=ours, peer=peer, unit="ms", target=target)


def test_a_percentile_is_a_sample_that_so_many_do_not_exceed() -> None:
    hundred = [float(number) for number in range(100, 0, -1)]
    assert percentile(hundred, 0.99) == 99.0
    assert percentile(hundred, 0.5) == 50.0
    assert percentile([7.0, 3.0], 0.99) == 7.0
    assert percentile([7.0], 0.01) == 7.0


def test_a_median_ignores_one_bad_moment() -> None:
    assert median([1.0, 1.1, 0.9, 1.0, 90.0]) == 1.0


def test_both_sides_are_measured_in_turns() -> None:
    order: list[str] = []

    def side(name: str, figure: float) -> float:
        order.append(name)
        return figure

    assert alternate(lambda: side("ours", 2.0), lambda: side("peer", 3.0), rounds=3) == (2.0, 3.0)
    assert order == ["ours", "peer"] * 3


def test_a_line_holds_up_to_its_bound_and_misses_beyond() -> None:
    assert line(Target("at most", 12.0), ours=12.0).held
    assert not line(Target("at most", 12.0), ours=12.1).held
    assert line(Target("times at most", 1.5), ours=3.0, peer=2.0).held
    assert not line(Target("times at most", 1.5), ours=3.1, peer=2.0).held
    assert line(Target("times at least", 0.8), ours=80.0, peer=100.0).held
    assert not line(Target("times at least", 0.8), ours=79.0, peer=100.0).held


def test_a_line_whose_peer_could_not_be_measured_misses() -> None:
    unmeasured = line(Target("times at most", 1.5), ours=1.0, peer=None)
    assert math.isnan(unmeasured.value)
    assert not unmeasured.held
    assert not line(Target("times at least", 0.8), ours=1.0, peer=0.0).held
    assert not line(Target("at most", 12.0), ours=math.nan).held
