"""How states, times and risks look on a terminal: the page's glyphs and colours, never a colour alone.

Pure. Does not know where the facts come from.
"""

from typing import Any

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
    "withdrawn": ("◌ withdrawn", "dim"),
}
_RISKS = {"low": ("low", "green"), "medium": ("medium", "yellow"), "high": ("HIGH", "bold red")}


def state(name: str) -> tuple[str, str]:
    return _STATES.get(name, (name, ""))


def risk(name: str) -> tuple[str, str]:
    return _RISKS.get(name, (name, "bold red"))


def elapsed(ms: int) -> str:
    """12 ms · 3.4 s · 1:07 · 2:01:07."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def caller(row: Row) -> str:
    """Who asks, and where: `claude ▸ api-server`."""
    who, folder = row["caller"]["client"], row["caller"]["workspace"]
    return f"{who} ▸ {folder.rstrip('/').rpartition('/')[2]}" if folder else who


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
