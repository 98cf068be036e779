"""Render an agent's answer in the terminal: message parts as they stream, and a status line for its activity.

All text is escaped, so an agent cannot control the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from handrail.cli.exact import escape_line_breaks, exact_line, exact_text
from handrail.cli.render._markdown_lines import MarkdownLines
from handrail.cli.render.formats import format_clock
from handrail.cli.render.output import Piece, note, say, width, write_text

if TYPE_CHECKING:
    from handrail.cli.wire import ActivityEnded, ActivityStarted, CallData, Entry, ErrorData, Growth, PlanData

_MARKS = {
    "pending": ("○", "dim"),
    "in_progress": ("◐", "blue"),
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("⊗", "dim"),
}
_DONE = {"completed": "✓", "in_progress": "◐", "pending": "○"}


class AnswerPrinter:
    """Prints the parts of an answer as they arrive."""

    def __init__(self, *, thoughts: bool) -> None:
        self._thoughts = thoughts
        self._open: tuple[str, int] | None = None
        """The part whose last line has no newline yet."""
        self._seen: dict[tuple[str, int], object] = {}
        self._styles = sys.stdout.isatty()
        self._markdown = MarkdownLines()
        self._is_markdown = False
        """Whether the open part is Markdown."""
        self._unfinished = ""
        """The last line of Markdown so far: it is styled, and printed, when it is whole."""

    def show(self, growth: Growth) -> None:
        """Print a part that is new, has grown or has changed."""
        part = (growth["message"], growth["n"])
        match growth["kind"]:
            case "text" if self._styles:
                self._render(part, growth["text"])
            case "text":
                self._grow(part, growth, "")
            case "thought":
                if self._thoughts:
                    self._grow(part, growth, "dim")
            case "call":
                self._call(part, cast("CallData | None", growth["data"]))
            case "plan":
                self._change(part, _plan_lines(cast("PlanData | None", growth["data"])))
            case "error":
                self._change(part, _error_lines(growth))
            case "note":
                self._change(part, [(line, "dim") for line in growth["text"].strip().splitlines()])
            case "raw":
                self._change(part, [("(the agent sent an update that Handrail does not know)", "dim")])
            case _:
                self._change(
                    part, [(escape_line_breaks(growth["text"] or _attachment_name(growth["data"])), "dim")]
                )

    @property
    def has_open_line(self) -> bool:
        """Whether the last printed line has no newline yet."""
        return self._open is not None and not self._is_markdown

    def end_line(self) -> None:
        """End the open line before something else is written."""
        unfinished, self._unfinished = self._unfinished, ""
        if unfinished:
            say(*self._markdown.render(unfinished))
        elif self.has_open_line:
            say("")
        self._open = None

    def _render(self, part: tuple[str, int], chunk: str) -> None:
        if self._open != part:
            self.end_line()
            self._markdown = MarkdownLines()
        self._open, self._is_markdown = part, True
        *lines, self._unfinished = (self._unfinished + chunk).split("\n")
        for line in lines:
            if (pieces := self._markdown.render(line)) or not line:
                say(*pieces)

    def _grow(self, part: tuple[str, int], growth: Growth, style: str) -> None:
        if self._open != part:
            self.end_line()
        self._open, self._is_markdown = part, False
        chunk = growth["text"]
        if style and sys.stdout.isatty():
            sys.stdout.write("\x1b[2m")
            write_text(chunk)
            sys.stdout.write("\x1b[0m")
            sys.stdout.flush()
        else:
            write_text(chunk)
        if chunk.endswith("\n"):
            self._open = None

    def _change(self, part: tuple[str, int], lines: list[Piece], looks: object = None) -> None:
        """Print a whole part, if its lines (or `looks`, if given) differ from the last time."""
        if not lines or self._seen.get(part) == (looks or lines):
            return
        self._seen[part] = looks or lines
        self.end_line()
        for line in lines:
            say(line)

    def _call(self, part: tuple[str, int], data: CallData | None) -> None:
        """Print a call when its status or title changes. A call id that arrives later is no reason to print it again."""
        if data is None or data["status"] == "pending":
            return
        mark, style = _MARKS[data["status"]]
        line = f"{mark} {exact_line(data['title'] or data['tool'])}"
        ours = f"  ({data['call']})" if data["call"] else ""
        self._change(part, [(line + ours, style)], looks=line)


def _plan_lines(data: PlanData | None) -> list[Piece]:
    entries = data["entries"] if data else []
    return [(f"{_DONE.get(each['status'], '○')} {exact_line(each['content'])}", "cyan") for each in entries]


def _error_lines(growth: Growth) -> list[Piece]:
    data = cast("ErrorData", growth["data"] or {})
    log = [(f"    {exact_line(line)}", "dim") for line in data.get("said", [])]
    logins = [f"    Log in: {exact_line(each['command'] or each['name'])}" for each in data.get("logins", [])]
    return [(f"✗ {exact_text(growth['text'])}", "red"), *log, *logins]


def _attachment_name(data: Mapping[str, object] | None) -> str:
    values = data or {}
    return str(values.get("name") or values.get("mime") or "")


def show_stop_reason(stop: str) -> None:
    """Print how the answer ended, unless it ended normally."""
    words = {
        "cancelled": "Stopped.",
        "failed": "It failed.",
        "interrupted": "Interrupted: Handrail was stopped.",
        "refusal": "The agent refused.",
        "max_tokens": "The agent stopped at its token limit.",
        "max_turn_requests": "The agent stopped at its request limit.",
    }
    if stop in words:
        note((words[stop], "yellow"))


ERASE = "\r\x1b[2K"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class StatusLine:
    """A status line that is redrawn in place; shown only on a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
        self._shown = ""

    def show(self, line: str) -> None:
        """Draw the line. Call `clear` before anything else is written."""
        if not line:
            self.clear()
        elif self._is_terminal and line != self._shown:
            sys.stdout.write(f"{ERASE}{DIM}{_truncate(exact_line(line))}{PLAIN}")
            sys.stdout.flush()
            self._shown = line

    def clear(self) -> None:
        if self._shown:
            sys.stdout.write(ERASE)
            sys.stdout.flush()
            self._shown = ""


def _truncate(line: str) -> str:
    """Truncate to the terminal's width: a wrapped line could not be erased."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    most = max(1, width() - 1)
    return line if cell_len(line) <= most else f"{set_cell_size(line, most - 1)}…"


@dataclass(frozen=True, slots=True)
class _Activity:
    operation: str
    parent: str
    sort: str
    title: str
    since: float

    def __str__(self) -> str:
        match self.sort:
            case "model":
                return f"asking {self.title.partition(':')[2] or self.title}"  # without the provider prefix
            case "thinking":
                return "thinking"
            case _:
                return self.title


class Activities:
    """Activities in progress in one thread, in order of start, from journal events."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._open: dict[str, _Activity] = {}
        self._ended: set[str] = set()

    def apply(self, entries: Sequence[Entry], now: float) -> list[ActivityStarted | ActivityEnded]:
        """Take in journal entries; return the activity events of this thread."""
        activities: list[ActivityStarted | ActivityEnded] = []
        for event in (entry["event"] for entry in entries):
            match event["kind"]:
                case "OperationEnded":
                    self._end(event["operation"])
                case "ActivityStarted" | "ActivityEnded" if event["thread"] == self._thread:
                    self._update(event, now)
                    activities.append(event)
                case _:
                    pass
        return activities

    def is_over(self, operation: str) -> bool:
        """Whether the journal has reached the end of this operation."""
        return operation in self._ended

    def line(self, now: float) -> str:
        """`Step 3 · asking claude-opus-5 · 0:12`; empty while there is no activity."""
        leaves = self._leaves()
        if not leaves:
            return ""
        since = min(leaf.since for leaf in leaves)
        return " · ".join([*self._path_to(leaves), *map(str, leaves), format_clock(now - since)])

    def _update(self, event: ActivityStarted | ActivityEnded, now: float) -> None:
        if event["kind"] == "ActivityEnded":
            self._open.pop(event["activity"], None)
            return
        self._open[event["activity"]] = _Activity(
            event["operation"], event["parent"] or "", event["sort"], event["title"], now
        )

    def _end(self, operation: str) -> None:
        self._ended.add(operation)
        self._open = {
            key: activity for key, activity in self._open.items() if activity.operation != operation
        }

    def _leaves(self) -> list[_Activity]:
        """Activities without children, except containers (operation, step, agent)."""
        above = {activity.parent for activity in self._open.values()}
        ends = (activity for key, activity in self._open.items() if key not in above)
        return [activity for activity in ends if activity.sort not in ("operation", "step", "agent")]

    def _path_to(self, leaves: list[_Activity]) -> list[str]:
        """The current step; for a single activity also the sub-agents or compaction it belongs to."""
        above = list(self._ancestors(leaves[0]))
        step = next((activity.title for activity in reversed(above) if activity.sort == "step"), None)
        by_way = [activity.title for activity in reversed(above) if activity.sort in ("agent", "compaction")]
        return [*([step] if step else []), *(by_way if len(leaves) == 1 else [])]

    def _ancestors(self, activity: _Activity) -> Iterator[_Activity]:
        """The ancestors of an activity, nearest first."""
        while (parent := self._open.get(activity.parent)) is not None:
            yield parent
            activity = parent
