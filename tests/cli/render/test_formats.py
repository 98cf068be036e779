"""Times as people read them."""

from typing import Any

import pytest

from handrail.cli.render.formats import format_caller, format_count, format_elapsed


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0 ms"), (999, "999 ms"), (3400, "3.4 s"), (67_000, "1:07"), (7_267_000, "2:01:07")],
)
def test_elapsed_time_is_as_short_as_it_can_be(ms: int, shown: str) -> None:
    assert format_elapsed(ms) == shown


def test_a_caller_is_its_name_and_its_folder() -> None:
    row: Any = {"caller": {"client": "claude", "workspace": "/home/me/api/"}}
    assert format_caller(row) == "claude ▸ api"
    row = {"caller": {"client": "claude", "workspace": None}}
    assert format_caller(row) == "claude"


def test_one_is_not_many() -> None:
    assert (format_count(1, "call"), format_count(2, "call")) == ("1 call", "2 calls")
