"""Calls as CSV: a cell that a spreadsheet would run is text."""

import csv
from collections.abc import AsyncIterator
from typing import Any

import pytest

from handrail.server.api._call_export import write_calls
from handrail.server.api.call_models import CallView
from handrail.store.values import Caller


async def export(title: str) -> dict[str, str]:
    empty: dict[str, Any] = dict.fromkeys(CallView.model_fields)
    caller = Caller(door="stdio", client="one", key="one", workspace=None)
    call = CallView.model_construct(None, **{**empty, "title": title, "started_at": 0, "caller": caller})

    async def pages() -> AsyncIterator[list[CallView]]:
        yield [call]

    text = "".join([part async for part in write_calls(pages(), "csv")])
    (row,) = csv.DictReader(text.splitlines(keepends=True))
    return row


@pytest.mark.parametrize(
    "title",
    ["=1+1", "  =1+1", '"=1+1', "\ufeff=1+1", "\uff1d1+1", "@SUM(1)", "|x", "-1", "\t=1", "\n=1", " +1"],
)
async def test_a_title_that_a_spreadsheet_would_run_is_written_as_text(title: str) -> None:
    assert (await export(title))["title"] == f"'{title}"


async def test_a_formula_behind_a_separator_of_other_countries_is_text() -> None:
    """A spreadsheet that separates by semicolons splits a quoted cell too."""
    assert (await export("x;=1+1"))["title"] == "x;'=1+1"
    assert (await export('x, "y";\t @SUM(1)'))["title"] == "x, \"y\";'\t' @SUM(1)"


async def test_another_title_is_written_as_it_is() -> None:
    for title in ("Run npm test", "a = b", "100 %", "cd a; make b=1", ""):
        assert (await export(title))["title"] == title
