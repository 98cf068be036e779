"""How the command line says how a call ended, how long it ran and waited, and when."""

import time
from typing import Any, cast

import pytest

from handrail.cli.render.formats import format_outcome, format_ran, format_time_of_day, format_waited

ROW = {
    "status": "done",
    "exit_code": 0,
    "signal": None,
    "asked_at": 1,
    "reviewed_at": None,
    "ran_at": 2,
    "waited_ms": 109_000,
    "ran_ms": 100,
}


def row(**facts: Any) -> Any:
    return cast("Any", ROW | facts)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "✓ done"),
        ({"exit_code": 1}, "✗ exit 1"),
        ({"exit_code": None, "signal": "SIGKILL"}, "✗ SIGKILL"),
        ({"status": "cancelled", "exit_code": None, "signal": "SIGTERM"}, "⊗ cancelled"),
    ],
)
def test_a_command_that_failed_is_not_done(facts: dict[str, Any], words: str) -> None:
    assert format_outcome(row(**facts))[0] == words


def test_running_and_waiting_are_told_apart() -> None:
    assert (format_ran(row()), format_waited(row())) == ("100 ms", "1:49")
    assert (format_ran(row(ran_at=None)), format_waited(row(asked_at=None))) == ("", "")
    assert format_waited(row(asked_at=None, reviewed_at=3)) == "1:49"


def test_a_time_of_day_has_its_date_only_on_another_day() -> None:
    noon = time.mktime((2026, 11, 18, 12, 5, 0, 0, 0, -1))
    shown = [format_time_of_day(int(noon * 1000), noon + days * 86_400) for days in (0, 1, 365)]
    assert shown == ["12:05", "Nov 18 12:05", "2026-11-18"]
