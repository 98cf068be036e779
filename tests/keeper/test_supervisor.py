"""A daemon that ended unexpectedly is restarted: soon at first, then later and later, and not without end."""

import time

import pytest

from handrail.keeper import supervisor
from handrail.keeper.supervisor import CRASH_SECONDS, RESTARTS_MAX, Supervisor


class Clock:
    """A monotonic clock that the test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return time.time()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(supervisor, "time", made)
    return made


def crash(supervised: Supervisor, clock: Clock) -> float:
    """Lose the daemon and restart it; the seconds in between."""
    supervised.lost()
    wait = supervised.wait_at_most()
    assert wait is not None
    assert not supervised.take_due()
    clock.now += wait
    assert supervised.take_due()
    assert not supervised.is_pending
    return wait


def test_each_restart_waits_longer_than_the_one_before(clock: Clock) -> None:
    supervised = Supervisor()
    waits = [crash(supervised, clock) for _ in range(RESTARTS_MAX)]
    assert waits == pytest.approx([0.1, 1, 2, 4, 8])
    assert supervised.restarts == RESTARTS_MAX
    assert supervised.restarted_at > 0


def test_a_daemon_that_crashes_again_and_again_is_left_alone(clock: Clock) -> None:
    supervised = Supervisor()
    for _ in range(RESTARTS_MAX):
        crash(supervised, clock)
    supervised.lost()
    assert (supervised.has_given_up, supervised.is_pending, supervised.take_due()) == (True, False, False)


def test_crashes_of_long_ago_do_not_count(clock: Clock) -> None:
    supervised = Supervisor()
    for _ in range(RESTARTS_MAX):
        crash(supervised, clock)
    clock.now += CRASH_SECONDS + 1
    assert crash(supervised, clock) == pytest.approx(0.1)
    assert supervised.restarts == RESTARTS_MAX + 1


def test_a_daemon_that_came_by_itself_needs_no_restart(clock: Clock) -> None:
    supervised = Supervisor()
    supervised.lost()
    supervised.cancel()
    clock.now += 10
    assert (supervised.take_due(), supervised.restarts, supervised.wait_at_most()) == (False, 0, None)


def test_a_client_that_asks_for_the_daemon_takes_the_planned_restart(clock: Clock) -> None:
    supervised = Supervisor()
    assert not supervised.take_pending()
    supervised.lost()
    assert supervised.take_pending()
    assert (supervised.restarts, supervised.take_due()) == (1, False)


def test_a_loss_that_is_noticed_twice_is_one(clock: Clock) -> None:
    """The connection closes, and the process is reaped."""
    supervised = Supervisor()
    supervised.lost()
    supervised.lost()
    clock.now += 1
    assert (supervised.take_due(), supervised.take_due(), supervised.restarts) == (True, False, 1)
