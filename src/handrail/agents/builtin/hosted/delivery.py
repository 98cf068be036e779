"""What waits to be sent to a host, in the order in which it was said.

Owns the queue between an operation, which never waits to speak, and the wire, which takes its time: pieces of text that
wait there together become one, and of what is told of a call while it runs only the last waits. It does not know what is
said.
"""

from collections import deque
from typing import Any, Protocol

import anyio

from handrail.agents.builtin.hosted.wire import Gone
from handrail.agents.builtin.tools.tool import Json


class Wire(Protocol):
    """The other end."""

    async def notify(self, method: str, params: Json) -> None:
        """Returns when it is on its way. Raises Gone."""
        ...

    async def ask(self, method: str, params: Json) -> Any:
        """Where the wait is cancelled, the other end is told. Raises Gone, and the SDK's RequestError."""
        ...


class _Said:
    """One message that waits; `words` where it is text that may still grow."""

    def __init__(self, method: str, params: Json, words: list[str] | None = None) -> None:
        self.method, self.params, self.words = method, params, words


class Delivery:
    """Of one session."""

    def __init__(self, wire: Wire, session: str) -> None:
        self._wire, self._session = wire, session
        self._waiting: deque[_Said] = deque()
        self._replaced: dict[str, _Said] = {}
        """Of those that wait, what may be told in another way until it is sent."""
        self._bell = anyio.Event()
        self._rest = anyio.Event()
        self._rest.set()
        self._over = False

    async def run(self) -> None:
        """Send what is said, for as long as there is somebody to hear it."""
        try:
            while True:
                await self._bell.wait()
                self._bell = anyio.Event()
                while self._waiting:
                    await self._send(self._next())
                self._rest.set()
        except Gone:
            pass
        finally:
            self.end()

    def end(self) -> None:
        """Nobody listens any more."""
        self._over = True
        self._waiting.clear()
        self._replaced.clear()
        self._rest.set()

    async def flushed(self) -> None:
        """Wait until all that was said is sent, or nobody listens any more."""
        await self._rest.wait()

    def text(self, kind: str, words: str) -> None:
        """A piece of a text: `kind` is the update that carries it."""
        if not words:
            return
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.words is not None and last.method == kind:
            last.words.append(words)
        else:
            self._say(_Said(kind, {}, [words]))

    def update(self, update: Json) -> None:
        self.notify("session/update", {"update": update})

    def latest(self, id: str, update: Json) -> None:
        """In place of the last one of this id, where that still waits."""
        said = _Said("session/update", {"sessionId": self._session, "update": update})
        if id in self._replaced:
            self._replaced[id].params = said.params
        else:
            self._replaced[id] = said
            self._say(said)

    def notify(self, method: str, params: Json) -> None:
        self._say(_Said(method, {"sessionId": self._session, **params}))

    async def ask(self, method: str, params: Json) -> Any:
        """Once all that was said before is sent."""
        await self.flushed()
        return await self._wire.ask(method, {"sessionId": self._session, **params})

    def _say(self, said: _Said) -> None:
        if self._over:
            return
        self._waiting.append(said)
        self._rest = anyio.Event() if self._rest.is_set() else self._rest
        self._bell.set()

    def _next(self) -> _Said:
        said = self._waiting.popleft()
        self._replaced = {of: waits for of, waits in self._replaced.items() if waits is not said}
        return said

    async def _send(self, said: _Said) -> None:
        if said.words is None:
            await self._wire.notify(said.method, said.params)
        else:
            content: Json = {"type": "text", "text": "".join(said.words)}
            update: Json = {"sessionUpdate": said.method, "content": content}
            await self._wire.notify("session/update", {"sessionId": self._session, "update": update})
