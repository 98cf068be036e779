"""Requests under way between us and an agent.

Owns what is known of one: ours with its answer, theirs with its cancelling. Does not send or do anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from handrail.store.value import Json


@dataclass
class Asked:
    """A request of ours, under way."""

    on_answer: Callable[[Any], None] | None = None
    """Called as the result comes, before anything that came after it is heard."""
    session: object = None
    """Which session it is about, where it is about one."""
    id: int = -1
    sent: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: Exception | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def answer(self) -> Any:
        """The result. Raises the SDK's RequestError, or ConnectionError where the line has closed."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.result


@dataclass
class Served:
    """A request of the agent's, on its way through the SDK, with the id that the SDK does not tell."""

    id: str | int | None
    params: Json
    size: int
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
