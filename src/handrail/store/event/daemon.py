"""The daemon itself: its comings and goings."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStarted:
    """The daemon is ready; says what it found of the time before."""

    kind: Literal["DaemonStarted"] = "DaemonStarted"
    version: str
    pid: int
    crashed: bool
    """The one before did not say goodbye."""
    interrupted: int
    approvals_kept: int
    terminals_adopted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped:
    """The daemon ended on purpose."""

    kind: Literal["DaemonStopped"] = "DaemonStopped"
    why: str
