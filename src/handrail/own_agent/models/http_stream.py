"""The line to the providers: one client for all of them, and a grip on every answer that is being read.

Owns that an answer is over when its reader is. The providers' packages read through layers of generators, and one that
is cancelled between two pieces leaves its connection open until somebody collects the rubbish: we do not wait for that.
It does not know what is asked.

How long a model is waited for, and how often it is asked again. Knows nothing of models.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio
import httpx2


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds, and counts."""

    connect: float = 10.0
    stall: float = 120.0
    """Without a byte of an answer, after which it counts as broken."""
    long_stall: float = 600.0
    """The same of those who give no sign of life while they think, load a model or read a long text: all but Anthropic."""
    first: float = 1.0
    """Before the second request; doubled each time."""
    longest: float = 30.0
    told: float = 300.0
    """The longest wait that a provider may ask for; beyond it, a person should decide."""
    tries: int = 8
    unreached: int = 3
    """Tries where nobody is there at all."""

    def wait(self, tried: int) -> float:
        """After so many tries. With a part of chance, so that not everybody comes back at once."""
        return min(self.first * 2 ** (tried - 1), self.longest) * random.uniform(0.5, 1.0)


CLOSING = 1.0
"""Seconds for closing, which needs nobody's answer."""


@dataclass(slots=True)
class _Reading:
    """What one reader has begun to read, and how long it stands a silence."""

    stall: float
    answers: list[httpx2.Response] = field(default_factory=list[httpx2.Response])


_reading: ContextVar[_Reading | None] = ContextVar("reading", default=None)


def opened(patience: Patience) -> httpx2.AsyncClient:
    """Not to be made on the loop: it loads the system's certificates. It follows nobody elsewhere, key in hand."""

    async def asked(request: httpx2.Request) -> None:
        """The providers' packages have their own ideas of time; ours hold."""
        if (now := _reading.get()) is not None:
            limits = {
                "connect": patience.connect,
                "pool": patience.connect,
                "read": now.stall,
                "write": now.stall,
            }
            request.extensions = {**request.extensions, "timeout": limits}

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(patience.stall, connect=patience.connect),
        event_hooks={"request": [asked], "response": [_begun]},
    )


@asynccontextmanager
async def reading(stall: float) -> AsyncGenerator[None]:
    """Every answer that begins within is closed at its end, and broken after so many seconds without a byte."""
    now = _Reading(stall)
    before = _reading.set(now)
    try:
        yield
    finally:
        _reading.reset(before)
        with anyio.move_on_after(CLOSING, shield=True):
            for answer in now.answers:
                await answer.aclose()


async def _begun(answer: httpx2.Response) -> None:
    if (now := _reading.get()) is not None:
        now.answers.append(answer)
