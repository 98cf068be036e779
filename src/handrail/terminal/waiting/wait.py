"""Waiting for a terminal: until it exits, prints a pattern, falls idle, is back at its prompt, opens a port, writes a file.

Owns why a wait ends, and that it always does: when its terminal ends, when that waits for input, when the time is up.
It does not know who waits, nor what they may see. Nothing here stalls the loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio

from handrail.terminal.waiting.stir import stirring

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.store.value import Json
    from handrail.terminal.terminal import Asks, Terminal

Until = Literal["exit", "pattern", "idle", "prompt", "port", "file"]
Why = Literal["exit", "pattern", "idle", "prompt", "port", "file", "waiting_for_input", "timeout"]
LIKELY_SECONDS = 2.0
"""How long what is only likely to be a question must stand: a program that starts up looks like one for a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Woke:
    """Why a wait ended."""

    why: Why
    detail: Json
    """What is known of it: what matched, who listens, the exit code."""


class Condition(ABC):
    """Something about a terminal that can come true."""

    until: Until

    @abstractmethod
    async def met(self) -> Json | None:
        """What there is to tell when it is true now; None when it is not."""

    def due(self) -> float | None:
        """After how many seconds to look again although nothing stirred; None for only then."""
        return None


class Exits(Condition):
    """Its end, which every wait heeds anyway."""

    until = "exit"

    async def met(self) -> Json | None:
        return None


async def wait(
    terminal: Terminal, condition: Condition, timeout: float, asks: Callable[[], Asks | None]
) -> Woke:
    """Return when the condition is true, or the terminal ends, or it `asks`, or the time is up; says which."""
    if (woke := await _now(terminal, condition, asks)) is not None:  # also when there is no time to wait
        return woke
    with anyio.move_on_after(timeout):
        async with stirring(terminal) as stir:
            while (woke := await _now(terminal, condition, asks)) is None:
                await stir.next(_sooner(condition.due(), terminal.asks))
            return woke
    return Woke(why="timeout", detail={})


async def _now(terminal: Terminal, condition: Condition, asks: Callable[[], Asks | None]) -> Woke | None:
    left = terminal.exit  # before the condition looks, so that it sees the last of the output
    if (detail := await condition.met()) is not None:
        return Woke(why=condition.until, detail=detail)
    if left is not None:
        return Woke(why="exit", detail={"exit_code": left.code, "signal": left.signal})
    return Woke(why="waiting_for_input", detail={}) if asks() is not None else None


def _sooner(due: float | None, asks: Asks | None) -> float | None:
    """A question that is only likely is looked at again."""
    if asks is None or asks.sure == "certain":
        return due
    return LIKELY_SECONDS if due is None else min(due, LIKELY_SECONDS)
