"""What an agent says, on a terminal: as it comes, in the order it came, with nothing in it that could drive the terminal.

Owns how each kind of part looks. Does not know where the flow comes from, nor when it ends.
"""

import sys
from typing import Any

from handrail.cli.exact import exact_line, exact_text, flat
from handrail.cli.show import Piece, note, say, text
from handrail.cli.words import Row

_MARKS = {
    "pending": ("○", "dim"),
    "in_progress": ("◐", "blue"),
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("⊗", "dim"),
}
_DONE = {"completed": "✓", "in_progress": "◐", "pending": "○"}


class Speech:
    """One agent's answer on this terminal."""

    def __init__(self, *, thoughts: bool) -> None:
        self._thoughts = thoughts
        self._open: tuple[str, int] | None = None
        """The part whose line is not ended yet."""
        self._seen: dict[tuple[str, int], Any] = {}

    def show(self, growth: Row) -> None:
        """A part that is new, has grown, or has changed."""
        part = (growth["message"], growth["n"])
        match growth["kind"]:
            case "text":
                self._grow(part, growth, "")
            case "thought":
                if self._thoughts:
                    self._grow(part, growth, "dim")
            case "call":
                self._call(part, growth["data"])
            case "plan":
                self._change(part, _plan(growth["data"]))
            case "error":
                self._change(part, _error(growth))
            case "note":
                self._change(part, [(line, "dim") for line in growth["text"].strip().splitlines()])
            case "raw":
                self._change(part, [("(the agent sent something that is not understood here)", "dim")])
            case _:
                self._change(part, [(flat(growth["text"] or _name(growth["data"])), "dim")])

    @property
    def is_speaking(self) -> bool:
        """There is a line that is not ended yet."""
        return self._open is not None

    def rest(self) -> None:
        """End the line that is being spoken, before something else is written."""
        if self._open is not None:
            self._open = None
            say("")

    def _grow(self, part: tuple[str, int], growth: Row, style: str) -> None:
        if self._open != part:
            self.rest()
        self._open = part
        said = growth["text"]
        if style and sys.stdout.isatty():
            sys.stdout.write("\x1b[2m")
            text(said)
            sys.stdout.write("\x1b[0m")
            sys.stdout.flush()
        else:
            text(said)
        if said.endswith("\n"):
            self._open = None

    def _change(self, part: tuple[str, int], lines: list[Piece], looks: object = None) -> None:
        """A part that is shown whole, each time it looks another way."""
        if not lines or self._seen.get(part) == (looks or lines):
            return
        self._seen[part] = looks or lines
        self.rest()
        for line in lines:
            say(line)

    def _call(self, part: tuple[str, int], data: Row | None) -> None:
        """Its id, which becomes known a moment later, is no news by itself."""
        if data is None or data["status"] == "pending":
            return
        mark, style = _MARKS[data["status"]]
        line = f"{mark} {exact_line(data['title'] or data['tool'])}"
        ours = f"  ({data['call']})" if data["call"] else ""
        self._change(part, [(line + ours, style)], looks=line)


def _plan(data: Row | None) -> list[Piece]:
    entries: list[Row] = data["entries"] if data else []
    return [(f"{_DONE.get(each['status'], '○')} {exact_line(each['content'])}", "cyan") for each in entries]


def _error(growth: Row) -> list[Piece]:
    data: Row = growth["data"] or {}
    said = [(f"    {exact_line(line)}", "dim") for line in data.get("said", [])]
    logins = [f"    Log in: {exact_line(each['command'] or each['name'])}" for each in data.get("logins", [])]
    return [(f"✗ {exact_text(growth['text'])}", "red"), *said, *logins]


def _name(data: Row | None) -> str:
    found = data or {}
    return str(found.get("name") or found.get("mime") or "")


def ended(stop: str) -> None:
    """How the answer ended, where that is not the usual way."""
    words = {
        "cancelled": "Stopped.",
        "failed": "It failed.",
        "interrupted": "Interrupted: Handrail went down meanwhile.",
        "refusal": "The agent refused.",
        "max_tokens": "The agent stopped at its limit of tokens.",
        "max_turn_requests": "The agent stopped at its limit of requests.",
    }
    if stop in words:
        note((words[stop], "yellow"))
