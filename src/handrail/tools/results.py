"""Helpers for tool inputs and results: the base input model, text or JSON answers, receipts."""

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from handrail.gate.tool import CallReport, ReceiptFacts
from handrail.store.values import Json, ProcessSeen, Result, SignalSent
from handrail.terminal.terminal import Report

Format = Annotated[
    Literal["text", "json"],
    Field(description="How the answer's text is written: `text` to read, or `json` with the same facts."),
]


REPLY_SECONDS = 5.0
"""Seconds between the end of a wait and the time when the client is answered, to read and send the result."""


class Input(BaseModel):
    """Base of all tool inputs. Unknown fields are an error: ignoring them would hide a mistake."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


def answer(text: str, data: Json, form: Literal["text", "json"] = "text") -> Result:
    return Result(text=json.dumps(data, ensure_ascii=False) if form == "json" else text, data=data)


def cap_wait(seconds: float, usual: float, call: CallReport) -> float:
    """Seconds that a tool may wait: as long as the input asks, if its client waits that long; else less.

    Not less than `usual`, the tool's default: then the call is handed back instead.
    """
    return min(seconds, max(usual, call.patience - REPLY_SECONDS))


def printable_line(text: str, limit: int = 80) -> str:
    """One printable line of at most `limit` characters."""
    line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 1] + "…"


def printable_path(path: str) -> str:
    """One printable line with the end of a path: its last names say more than its first."""
    if len(path) <= PATH_MAX:
        return printable_line(path)
    end = path[1 - PATH_MAX :]
    whole = end.find("/") if "/" in end else 0  # the first name may be cut
    return printable_line(f"…{end[whole:]}")


PATH_MAX = 80
"""Characters of a path in a title: a longer one leaves no room beside it."""


def count_text(count: int, noun: str) -> str:
    """`1 line`, `2 lines`, `1,000 matches`."""
    plural = f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural.replace('ys', 'ies')}"


def facts_of(report: Report) -> ReceiptFacts:
    """The receipt of ending a process tree: signals sent, processes stopped, processes left."""
    return ReceiptFacts(
        signals=tuple(SignalSent(signal=item.signal, after_ms=int(item.at_ms)) for item in report.signals),
        processes_stopped=tuple(ProcessSeen(pid=item.pid, name=item.name) for item in report.stopped),
        processes_left=tuple(ProcessSeen(pid=item.pid, name=item.name) for item in report.left),
    )
