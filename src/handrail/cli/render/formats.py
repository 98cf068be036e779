"""Format states, risks and times for the terminal, and parse option values: durations, JSON, files, id prefixes.

States use the page's glyphs and colours. A state always has a glyph or a word, never a colour alone.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from handrail.cli.exact import escape_line_breaks
from handrail.cli.failure import Failure

if TYPE_CHECKING:
    from handrail.cli.wire import ApprovalView, CallView

_STATES = {
    "waiting": ("● needs you", "yellow"),
    "running": ("◐ running", "blue"),
    "done": ("✓ done", "green"),
    "completed": ("✓ completed", "cyan"),
    "failed": ("✗ failed", "red"),
    "denied": ("⊘ denied", "red"),
    "cancelled": ("⊗ cancelled", "dim"),
    "interrupted": ("◌ interrupted", "magenta"),
    "open": ("● needs you", "yellow"),
    "allowed": ("✓ allowed", "green"),
    "expired": ("◌ expired", "magenta"),
    "withdrawn": ("◌ withdrawn", "dim"),
}
_EFFECTS = {"allow": ("✓ allow", "green"), "ask": ("● ask", "yellow"), "deny": ("⊘ deny", "red")}
_RISKS = {"low": ("low", "green"), "medium": ("medium", "yellow"), "high": ("HIGH", "bold red")}


def format_state(name: str) -> tuple[str, str]:
    return _STATES.get(name, (name, ""))


def format_outcome(row: CallView) -> tuple[str, str]:
    """The state of a call. A command that failed is not `done`, whatever the protocol calls it."""
    if row["status"] == "done" and row["exit_code"]:
        return f"✗ exit {row['exit_code']}", "red"
    if row["status"] == "done" and row["signal"]:
        return f"✗ {escape_line_breaks(row['signal'])}", "red"
    return format_state(row["status"])


def format_time_of_day(ms: int, now: float | None = None) -> str:
    """Local time: `14:03` today, `Nov 17 14:03` on another day, `2025-11-17` in another year."""
    then, today = time.localtime(ms / 1000), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    return time.strftime("%b %d %H:%M" if then.tm_year == today.tm_year else "%Y-%m-%d", then)


def format_ran(row: CallView) -> str:
    return "" if row["ran_at"] is None else format_elapsed(row["ran_ms"])


def format_waited(row: CallView) -> str:
    """How long a call waited for an answer; empty if no person was asked."""
    asked = row["asked_at"] is not None or row["reviewed_at"] is not None
    return format_elapsed(row["waited_ms"]) if asked else ""


def format_risk(name: str) -> tuple[str, str]:
    return _RISKS.get(name, (name, "bold red"))


def format_effect(name: str) -> tuple[str, str]:
    """The effect of a rule or a decision, with its style."""
    return _EFFECTS.get(name, (name, ""))


def format_elapsed(ms: int) -> str:
    """12 ms · 3.4 s · 1:07 · 2:01:07."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    return format_clock(ms / 1000)


def format_clock(seconds: float) -> str:
    """0:03 · 1:07 · 2:01:07."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_ago(then: int | None, now: int) -> str:
    """Relative time: `3 m ago`, `never`. Arguments are milliseconds since 1970."""
    if then is None:
        return "never"
    minutes = max(0, now - then) // 60_000
    for unit, name in ((1440, "d"), (60, "h"), (1, "m")):
        if minutes >= unit:
            return f"{minutes // unit} {name} ago"
    return "just now"


def format_caller(row: ApprovalView | CallView) -> str:
    """Client and folder: `claude ▸ api-server`."""
    caller = row["caller"]
    who, folder = escape_line_breaks(caller["client"]), escape_line_breaks(caller["workspace"] or "")
    return f"{who} ▸ {folder.rstrip('/').rpartition('/')[2]}" if folder else who


def format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MOST_SECONDS = 315_360_000
"""Ten years; a longer duration is taken for a typing error."""
CONTENT_MAX = 16_000_000
"""Maximum bytes of a file's content in an answer."""


def parse_duration(text: str | None) -> int | None:
    """Parse `90s`, `30m`, `12h`, `7d` or `2w` into seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text.strip())
    length = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < length <= MOST_SECONDS:
        raise typer.BadParameter(f"{text!r} is not a duration. Write 90s, 30m, 12h, 7d or 2w.")
    return length


def parse_json_object(text: str | None) -> dict[str, Any] | None:
    """Parse a JSON object: the input of a tool."""
    if text is None:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"The input is not JSON: {error}. Quote it as one word.") from None
    if not isinstance(value, dict):
        raise typer.BadParameter('The input is a JSON object: \'{"command": "git status"}\'.')
    return cast("dict[str, Any]", value)


def read_content(file: Path | None) -> str | None:
    """Read the text of a file, or of stdin for `-`. Raises Failure."""
    if file is None:
        return None
    try:
        raw = sys.stdin.buffer.read(CONTENT_MAX + 1) if str(file) == "-" else _read(file)
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} cannot be read as text: {error}. Name a text file with --content.") from None
    if len(raw) > CONTENT_MAX:
        raise Failure(f"{file} is larger than {CONTENT_MAX:,} bytes. Write such a file by hand.")
    return text


def _read(file: Path) -> bytes:
    with file.expanduser().open("rb") as opened:
        return opened.read(CONTENT_MAX + 1)


MOST_SHOWN = 5


def find_by_prefix(typed: str, ids: Iterable[str], noun: str, command: str = "") -> str:
    """The id that equals `typed`, or the only id that starts with it. Raises Failure if none or several do.

    `command` lists what there is; default: the plural of the noun.
    """
    known = list(ids)
    if typed in known:
        return typed
    matches = [each for each in known if typed and each.startswith(typed)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise Failure(f"There is no {noun} {typed}. `handrail {command or f'{noun}s'}` lists what there is.")
    listed = ", ".join(matches[:MOST_SHOWN]) + (" …" if len(matches) > MOST_SHOWN else "")
    raise Failure(f"{typed} is the beginning of {len(matches)} {noun}s: {listed}. Type more of it.")


def parse_assignment(words: str, option: str) -> tuple[str, str]:
    """`NAME=TEXT` as given to an option. Raises BadParameter."""
    name, separator, text = words.partition("=")
    if not separator or not name:
        raise typer.BadParameter(f"{option} takes NAME=TEXT, not {words!r}.")
    return name, text


def format_minute(ms: int) -> str:
    """A day and a minute in local time, from milliseconds since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
