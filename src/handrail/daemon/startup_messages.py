"""What a person who starts Handrail in the foreground is told: where the page is, and a fresh link on Enter."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio

from handrail.server.access import Access


class Announcer:
    """Speaks on the terminal that started the daemon."""

    def __init__(self, access: Access, url: str, command_line: str, wished: int | None = None) -> None:
        """`wished` is the port that was asked for, when it could not be had."""
        self._wished = wished
        self._access = access
        self._url = url
        self._command_line = command_line

    async def run(self) -> None:
        """Say it once, and the link again whenever Enter is pressed: a code lasts a minute."""
        _say("", f"Handrail is ready at {self._url}", "")
        if self._wished is not None:
            _say(f"Port {self._wished} is taken, so it has another.", "")
        self._link()
        _say("", "Give this to an agent that speaks MCP:", f"  {self._command_line}", "")
        if not _has_keyboard():
            return
        _say("Press Enter for a fresh link, Ctrl-C to stop everything.")
        while await _line():
            self._link()

    def _link(self) -> None:
        if self._access.sealed is not None:
            _say(self._access.sealed)
        else:
            _say(f"Sign in:  {self._url}/#code={self._access.issue_code()}")


def line_for_an_agent(environment: Mapping[str, str]) -> str:
    """What connects a client to this very daemon; a home of its own must be named, or the door would find another."""
    home = environment.get("HANDRAIL_HOME")
    words = ["env", f"HANDRAIL_HOME={home}"] if home else []
    words += [str(Path(sys.executable).parent / "handrail"), "mcp"]
    return f"claude mcp add handrail -- {shlex.join(words)}"


def say_replaced() -> None:
    """Why this terminal is free again although Handrail runs on."""
    _say("Told to restart: a new daemon takes over in the background. `handrail down` ends it.")


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _has_keyboard() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


async def _line() -> bool:
    await anyio.wait_readable(0)
    return bool(os.read(0, 4096))
