"""Growth is told at once, then rarely, and never queued."""

import time

from handrail.keeper.connection import GROWTH_INTERVAL, GrowthThrottle


def test_the_first_growth_is_due_at_once_and_the_next_only_later() -> None:
    growth = GrowthThrottle()
    growth.grew("t")
    assert growth.wait_at_most() == 0
    assert growth.take_due() == ["t"]
    growth.grew("t")
    assert growth.take_due() == []
    wait = growth.wait_at_most()
    assert wait is not None
    assert 0 < wait <= GROWTH_INTERVAL


def test_a_thousand_growths_are_one_notice() -> None:
    growth = GrowthThrottle()
    for _ in range(1000):
        growth.grew("t")
    assert growth.take_due() == ["t"]
    assert growth.wait_at_most() is None


def test_growth_that_waited_is_due_in_the_end() -> None:
    growth = GrowthThrottle()
    growth.grew("t")
    growth.take_due()
    growth.grew("t")
    until = time.monotonic() + 5
    while not (due := growth.take_due()):
        assert time.monotonic() < until
    assert due == ["t"]


def test_a_forgotten_terminal_is_not_told_of() -> None:
    growth = GrowthThrottle()
    growth.grew("t")
    growth.forget("t")
    assert growth.take_due() == []
