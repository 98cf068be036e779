"""When the door looks for a daemon again."""

from __future__ import annotations

import time

import pytest

from handrail.door import proxy
from handrail.door.proxy import DELAY_MAX, FAILURE_SECONDS, Retry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in its last place; the door's clock and no other."""
    now = [1000.0]
    monkeypatch.setattr(proxy, "time", type("Clock", (), {"monotonic": lambda: now[-1]}))
    return now


def test_the_first_look_is_taken_at_once() -> None:
    assert Retry().is_due(has_requests=False)
    assert time.monotonic() > 0


def test_a_daemon_lost_after_a_long_life_is_replaced_at_once(clock: list[float]) -> None:
    plan = Retry()
    plan.lost(since=0.0, said_bye=False)
    assert plan.is_due(has_requests=False)


def test_daemons_that_keep_dying_are_replaced_ever_more_slowly_up_to_a_bound(clock: list[float]) -> None:
    plan = Retry()
    delays: list[float] = []
    for _ in range(10):
        plan.lost(since=clock[-1], said_bye=False)
        assert not plan.is_due(has_requests=True)
        assert plan.at is not None
        delays.append(plan.at - clock[-1])
    assert delays == sorted(delays)
    assert delays[0] < 0.2
    assert delays[-1] == DELAY_MAX


def test_a_daemon_that_said_bye_is_missed_only_by_a_client_that_asks(clock: list[float]) -> None:
    plan = Retry()
    plan.lost(since=0.0, said_bye=True)
    assert not plan.is_due(has_requests=False)
    assert plan.is_due(has_requests=True)


def test_a_failure_is_remembered_for_a_while(clock: list[float]) -> None:
    plan = Retry()
    assert plan.recent_failure == ""
    plan.failed("no disk")
    assert plan.recent_failure == "no disk"
    clock.append(clock[-1] + FAILURE_SECONDS)
    assert plan.recent_failure == ""
