"""Terminals of a real daemon, for the tests of the commands. Every wait is under `BOUND`."""

from __future__ import annotations

import os

from tests.cli.scene import Home, Json, within

from handrail.cli.client import reach


def opened(home: Home, script: str, name: str = "", **more: object) -> str:
    """A terminal of the person's own that runs this."""
    body = {
        "of": "shell",
        "keep": True,
        "name": name,
        "command": ["sh", "-c", script],
        "cwd": str(home.workspace),
        "env": {"PATH": os.environ["PATH"], "TERM": "xterm"},
        **more,
    }
    with reach("person") as link:
        return str(link.post("terminals", body=body)["id"])


def shows(home: Home, terminal: str, words: str) -> str:
    """All it has printed, once that is in it."""

    def look() -> str | None:
        out = home.ok("terminal", "read", terminal).out
        return out if words in out else None

    return within(look, words)


def row(home: Home, terminal: str) -> Json:
    return next(each for each in home.ok("terminals", "--all", "--json").json if each["id"] == terminal)


def ended(home: Home, terminal: str) -> Json:
    def look() -> Json | None:
        found = row(home, terminal)
        return None if found["running"] else found

    return within(look, f"{terminal} to end")
