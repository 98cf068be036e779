"""The HTTP client for all providers, and the retry and timeout settings.

Closes every response when its reader ends. The providers' packages read through nested generators; one
cancelled between two chunks would leave its connection open until garbage collection.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING

import anyio

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Timeouts in seconds, and numbers of tries."""

    connect: float = 10.0
    stall: float = 120.0
    """Without a byte of a response, after which it counts as broken."""
    long_stall: float = 600.0
    """The same for providers that are silent while they think, load a model or read a long prompt: all but
    Anthropic."""
    first: float = 1.0
    """Delay before the second request; doubled each time."""
    longest: float = 30.0
    told: float = 300.0
    """The longest `Retry-After` to follow; beyond it, a person should decide."""
    tries: int = 8
    unreached: int = 3
    """Tries if the server cannot be reached at all."""

    def wait(self, tried: int) -> float:
        """The backoff after so many tries, with jitter so that clients do not all retry together."""
        return min(self.first * 2 ** (tried - 1), self.longest) * random.uniform(0.5, 1.0)


CLOSING = 1.0
"""Seconds to close a response; closing does not wait for the server, so this only bounds a bug."""


@dataclass(slots=True)
class _Reading:
    """The responses that one reader has open, and its read timeout."""

    stall: float
    answers: list[httpx2.Response] = field(default_factory=list["httpx2.Response"])


_reading: ContextVar[_Reading | None] = ContextVar("reading", default=None)


def open_http_client(policy: RetryPolicy) -> httpx2.AsyncClient:
    """Create the client. Call it off the event loop: it loads the system's certificates. It follows no
    redirects, so a key cannot leak to another host."""
    import httpx2  # noqa: PLC0415 - slow import

    async def set_timeouts(request: httpx2.Request) -> None:
        """Replace the timeouts that the providers' packages set with ours."""
        if (now := _reading.get()) is not None:
            limits = {
                "connect": policy.connect,
                "pool": policy.connect,
                "read": now.stall,
                "write": now.stall,
            }
            request.extensions = {**request.extensions, "timeout": limits}

    return httpx2.AsyncClient(
        verify=load_certificates(),
        timeout=httpx2.Timeout(policy.stall, connect=policy.connect),
        event_hooks={"request": [set_timeouts], "response": [_remember]},
    )


@cache
def load_certificates() -> SSLContext:
    """The system's certificates, for all HTTP clients of this process: loading them takes 30 ms."""
    import httpx2  # noqa: PLC0415 - slow import

    return httpx2.create_ssl_context()


@asynccontextmanager
async def closing_responses(stall: float) -> AsyncGenerator[None]:
    """Close every response opened within the `with` at its end; `stall` is the read timeout in seconds."""
    now = _Reading(stall)
    before = _reading.set(now)
    try:
        yield
    finally:
        _reading.reset(before)
        with anyio.move_on_after(CLOSING, shield=True):
            for answer in now.answers:
                await answer.aclose()


async def _remember(answer: httpx2.Response) -> None:
    if (now := _reading.get()) is not None:
        now.answers.append(answer)
