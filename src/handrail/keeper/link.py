"""What keeper and warden say to each other: one is a fork of the other, so there is no version to it.

Owns these messages' names and fields. Does not know how a message is acted upon.
"""

from __future__ import annotations

from dataclasses import dataclass

from handrail.keeper.facts import Exit, Report
from handrail.keeper.frames import decode, name_of


@dataclass(frozen=True, slots=True)
class Launched:
    pid: int


@dataclass(frozen=True, slots=True)
class NotLaunched:
    why: str


@dataclass(frozen=True, slots=True)
class LeaderLeft:
    exit: Exit


@dataclass(frozen=True, slots=True)
class TreeEnded:
    report: Report


@dataclass(frozen=True, slots=True)
class SignalLeader:
    number: int


@dataclass(frozen=True, slots=True)
class EndTree:
    grace: float


FromWarden = Launched | NotLaunched | LeaderLeft | TreeEnded
ToWarden = SignalLeader | EndTree

_FROM_WARDEN = {name_of(kind): kind for kind in (Launched, NotLaunched, LeaderLeft, TreeEnded)}
_TO_WARDEN = {name_of(kind): kind for kind in (SignalLeader, EndTree)}


def from_warden(line: bytes) -> FromWarden:
    return decode(line, _FROM_WARDEN)


def to_warden(line: bytes) -> ToWarden:
    return decode(line, _TO_WARDEN)
