"""The two streams through which the SDK's server speaks, as thin as they can be.

Owns nothing: each message goes straight to a function and back, without a task or a queue of its own, because every
turn of the loop that a message takes is time a client waits.
"""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage


class _Stream:
    """What the SDK asks of a stream beside its messages. Whoever opened the socket closes it."""

    async def aclose(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        return


class Heard(_Stream):
    """What the peer says: `hear` gives the next message, or None when there will be no more."""

    def __init__(self, hear: Callable[[], Awaitable[types.JSONRPCMessage | None]]) -> None:
        self._hear = hear

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        message = await self._hear()
        if message is None:
            raise anyio.EndOfStream
        return SessionMessage(message)


class Said(_Stream):
    """What the peer is told."""

    def __init__(self, say: Callable[[types.JSONRPCMessage], Awaitable[None]]) -> None:
        self._say = say

    async def send(self, item: SessionMessage, /) -> None:
        await self._say(item.message)
