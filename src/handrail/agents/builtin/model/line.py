"""The line to the providers: one client for all of them, and a grip on every answer that is being read.

Owns that an answer is over when its reader is. The providers' packages read through layers of generators, and one that
is cancelled between two pieces leaves its connection open until somebody collects the rubbish: we do not wait for that.
It does not know what is asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import anyio
import httpx2

from handrail.agents.builtin.model.patience import Patience

CLOSING = 1.0
"""Seconds for closing, which needs nobody's answer."""

_read: ContextVar[list[httpx2.Response] | None] = ContextVar("read", default=None)


def opened(patience: Patience) -> httpx2.AsyncClient:
    """Not to be made on the loop: it loads the system's certificates. It follows nobody elsewhere, key in hand."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(patience.stall, connect=patience.connect),
        event_hooks={"response": [_begun]},
    )


@asynccontextmanager
async def reading() -> AsyncGenerator[None]:
    """Every answer that begins within is closed at its end."""
    begun: list[httpx2.Response] = []
    before = _read.set(begun)
    try:
        yield
    finally:
        _read.reset(before)
        with anyio.move_on_after(CLOSING, shield=True):
            for answer in begun:
                await answer.aclose()


async def _begun(answer: httpx2.Response) -> None:
    if (begun := _read.get()) is not None:
        begun.append(answer)
