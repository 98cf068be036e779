"""How states, times and risks look on a terminal: the page's glyphs and colours, never a colour alone.

Pure. Does not know where the facts come from.
"""

from typing import Any

from handrail.cli.exact import flat

Row = dict[str, Any]
"""One object as the daemon's routes give it; its shape is described at /api/openapi.json."""

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


def state(name: str) -> tuple[str, str]:
    return _STATES.get(name, (name, ""))


def risk(name: str) -> tuple[str, str]:
    return _RISKS.get(name, (name, "bold red"))


def effect(name: str) -> tuple[str, str]:
    """What a rule, or a decision, comes to."""
    return _EFFECTS.get(name, (name, ""))


def elapsed(ms: int) -> str:
    """12 ms · 3.4 s · 1:07 · 2:01:07."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    return clock(ms / 1000)


def clock(seconds: float) -> str:
    """0:03 · 1:07 · 2:01:07."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def ago(then: int | None, now: int) -> str:
    """When something was last, in milliseconds since 1970: `3 m ago`; `never`."""
    if then is None:
        return "never"
    minutes = max(0, now - then) // 60_000
    for unit, name in ((1440, "d"), (60, "h"), (1, "m")):
        if minutes >= unit:
            return f"{minutes // unit} {name} ago"
    return "just now"


def caller(row: Row) -> str:
    """Who asks, and where: `claude ▸ api-server`."""
    who, folder = flat(row["caller"]["client"]), flat(row["caller"]["workspace"] or "")
    return f"{who} ▸ {folder.rstrip('/').rpartition('/')[2]}" if folder else who


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
