"""What happens to a watched process, and who types into it."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import Owner, Sure, TerminalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalOpened:
    """A watched process started."""

    kind: Literal["TerminalOpened"] = "TerminalOpened"
    terminal: str
    call: str | None
    name: str
    cwd: str
    pid: int
    of: TerminalKind = "command"
    owner: Owner | None = None
    """None in the records of old, when every terminal was a call's."""
    argv: tuple[str, ...] = ()
    cols: int = 80
    rows: int = 24
    nonce: str = ""
    """What its shell's own marks carry; empty when it makes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTyped:
    """Somebody typed a line, or keys."""

    kind: Literal["TerminalTyped"] = "TerminalTyped"
    terminal: str
    by: str
    person: bool
    text: str | None
    """None when the terminal did not show it: what is hidden there is recorded nowhere."""
    offset: int
    """How far its output had come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTaken:
    """A person took a terminal over: agents cannot type into it."""

    kind: Literal["TerminalTaken"] = "TerminalTaken"
    terminal: str
    by: str
    holds: bool
    """Until it is released; otherwise only while the person types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalReleased:
    """Agents may type again."""

    kind: Literal["TerminalReleased"] = "TerminalReleased"
    terminal: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalAsked:
    """What runs in a terminal waits for input."""

    kind: Literal["TerminalAsked"] = "TerminalAsked"
    terminal: str
    prompt: str
    sure: Sure
    secret: bool
    """It hides what is typed: only a person may answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalWentOn:
    """It waits for input no longer."""

    kind: Literal["TerminalWentOn"] = "TerminalWentOn"
    terminal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalForgotten:
    """An ended terminal's output was deleted, to keep within what is kept."""

    kind: Literal["TerminalForgotten"] = "TerminalForgotten"
    terminal: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalEnded:
    """A watched process is gone."""

    kind: Literal["TerminalEnded"] = "TerminalEnded"
    terminal: str
    exit_code: int | None
    signal: str | None
    bytes: int
    lost: bool = False
    """It ended with the keeper or its warden, so its exit is unknown."""
    cwd: str | None = None
    """Where it was last, if it was ever looked at: who may read it later hangs on that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalClosed:
    """Somebody ended a watched process; how it went is told by `TerminalEnded`."""

    kind: Literal["TerminalClosed"] = "TerminalClosed"
    terminal: str
    by: str
