"""Asking the daemon for a terminal of the person's own.

Owns what of the caller goes along: the whole environment, the directory, the window's size. Does not know how the
terminal is shown.
"""

from __future__ import annotations

import os

from handrail.door import plain
from handrail.door.request import Refused, post
from handrail.door.window import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from handrail.places import Places

SIDE_MAX = 1000
"""Columns or rows that a terminal may be opened with; a window may grow it further."""

NAME_MAX = 200

IMPATIENT_SECONDS = 5.0
"""For a daemon to come up while somebody waits who would rather have a plain shell."""


class NotOpened(Exception):
    """There is no terminal; the sentence says why."""

    def __init__(self, why: str, is_gone: bool) -> None:
        super().__init__(why)
        self.is_gone = is_gone
        """There was no daemon to ask."""


def open_terminal(places: Places, command: list[str], name: str, *, keep: bool, is_patient: bool) -> str:
    """The id of a new terminal that runs this, or the person's shell. Raises NotOpened."""
    within = None if is_patient else IMPATIENT_SECONDS
    try:
        return str(post(places, "/api/terminals", order(command, name, keep=keep), within)["id"])
    except Refused as refused:
        raise NotOpened(str(refused), refused.is_gone) from None


def order(command: list[str], name: str, *, keep: bool) -> dict[str, Any]:
    """What is asked for."""
    cols, rows = size_of(0, 1, 2)
    return {
        "of": "shell",
        "name": _shown(name)[:NAME_MAX],
        "command": [_absolute(command[0]), *command[1:]] if command else [],
        "cwd": _cwd(),
        "env": environment(),
        "cols": min(cols, SIDE_MAX),
        "rows": min(rows, SIDE_MAX),
        "keep": keep,
    }


def environment() -> dict[str, str]:
    """All of the caller's variables that can be told in words, and a shell that exists."""
    told = {name: value for name, value in os.environ.items() if _is_text(name) and _is_text(value)}
    return {**told, "SHELL": plain.shell()}


def _absolute(program: str) -> str:
    return os.path.join(_cwd(), program) if "/" in program else program


def _cwd() -> str:
    """Where the caller is, by the name that the caller's shell has for it."""
    here, named = os.getcwd(), os.environ.get("PWD", "")
    try:
        return named if os.path.isabs(named) and os.path.samefile(named, here) else here
    except OSError:
        return here


def _is_text(value: str) -> bool:
    """A byte that is no UTF-8 cannot be said in JSON."""
    return value.isprintable() or not any("\ud800" <= each <= "\udfff" for each in value)


def _shown(name: str) -> str:
    return name.encode(errors="replace").decode()
