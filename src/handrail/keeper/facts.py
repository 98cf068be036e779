"""What can be known of a terminal, in the words of the keeper: its processes, how it waits, how it ended.

Owns these facts' fields. Does not know who tells them, nor when.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exit:
    """How a leader ended: a code, or a signal's name, or neither and `lost` says why nobody knows."""

    code: int | None = None
    signal: str | None = None
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal sent to the whole tree, in milliseconds since the ending began."""

    signal: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a running terminal shows.

    `foreground` is the process its keys go to, `busy` whether that is another than the leader. `reading` is how the
    foreground waits: `tty` for a read on this terminal, `poll` for a wait on several things, `other`, or `hidden` when
    the system does not tell.
    """

    foreground: Process | None
    busy: bool
    cwd: str | None
    echo: bool
    canonical: bool
    reading: str

    @property
    def secret(self) -> bool:
        """It hides what is typed, line by line: a password. (A shell's own prompt has the echo off, too, but is raw.)"""
        return self.canonical and not self.echo


@dataclass(frozen=True, slots=True)
class Report:
    """How a tree was ended. `more` counts stopped processes beyond those listed."""

    why: str
    signals: tuple[Sent, ...] = ()
    stopped: tuple[Process, ...] = ()
    left: tuple[Process, ...] = ()
    duration_ms: float = 0.0
    more: int = 0
