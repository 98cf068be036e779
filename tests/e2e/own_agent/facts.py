"""The journal, heard as it is written: what an operation does, known the moment it is a fact.

Owns the socket and the facts of one operation. It does not know what anybody makes of them.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from tests.e2e.home import BOUND
from tests.e2e.person import Json, Person
from websockets.asyncio.client import ClientConnection, connect

Holds = Callable[[Json], bool]


class Facts:
    """A follower of the journal."""

    def __init__(self, connection: ClientConnection) -> None:
        self._socket = connection
        self._read: list[Json] = []

    async def next(self) -> Json:
        with anyio.fail_after(BOUND):
            while not self._read:
                self._read = [entry["event"] for entry in json.loads(await self._socket.recv())["entries"]]
        return self._read.pop(0)

    async def until(self, holds: Holds) -> Json:
        """The first fact from here on of which this holds."""
        while not holds(fact := await self.next()):
            pass
        return fact


@asynccontextmanager
async def following(person: Person) -> AsyncGenerator[Facts]:
    """From now on."""
    after = (await person.get("state"))["seq"]
    url = f"{person.home.url.replace('http', 'ws', 1)}/api/live?after={after}"
    protocols: Any = ["handrail", f"bearer.{person.bearer}"]
    async with connect(url, subprotocols=protocols, open_timeout=BOUND, max_size=None) as connection:
        yield Facts(connection)
