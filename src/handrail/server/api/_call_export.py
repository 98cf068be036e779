"""Calls as CSV or JSON files."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal

from handrail.server.api.call_models import CallView

EXPORT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
COLUMNS = (
    *("time", "id", "agent", "tool", "title", "status", "exit_code", "signal", "waited_ms", "ran_ms"),
    *("allowed_by", "answered_by", "ended_by", "folder", "thread", "message"),
)
_FORMULA = re.compile(r"[\s'\"\ufeff]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How a cell begins that a spreadsheet may run, also after blanks, quotes, or in full width; the titles of calls are chosen
by agents."""
_NEXT_CELL = re.compile(r"(?!\A)([;\t])(?=[\s'\"\ufeff]*[=+\-@|%\uff1d\uff0b\uff0d\uff20])")
"""A formula after a semicolon or a tab, at which some spreadsheets split the text into cells, quoted or not."""


async def write_calls(
    pages: AsyncIterator[list[CallView]], format: Literal["csv", "json"]
) -> AsyncIterator[str]:
    """Write all calls, a page at a time."""
    begin = True
    async for calls in pages:
        if format == "csv":
            yield _csv_rows([COLUMNS] * begin + [_cells(call) for call in calls])
        else:
            lines = ",\n".join(json.dumps(call.model_dump(mode="json"), ensure_ascii=False) for call in calls)
            yield f"{'[' if begin else ','}\n{lines}" if lines or begin else ""
        begin = False
    if format == "json":
        yield "\n]\n"


def _csv_rows(rows: list[tuple[object, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = _NEXT_CELL.sub(r"\1'", value)
    return f"'{text}" if _FORMULA.match(text) else text


def _cells(call: CallView) -> tuple[object, ...]:
    opened = datetime.fromtimestamp(call.started_at / 1000, UTC).isoformat(timespec="milliseconds")
    return (
        *(opened, call.id, call.caller.client, call.tool, call.title, call.status, call.exit_code),
        *(call.signal, call.waited_ms, call.ran_ms, call.allowed_by, call.answered_by, call.by),
        *(call.caller.workspace, call.thread, call.message),
    )
