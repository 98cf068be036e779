"""The other end of a session, in memory: what it was told, and how it answers questions."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from handrail.own_agent.tools.agent_tool import Json


class Heard:
    """Everything that came, in order. It takes its time where `slow` is set, until `go` is called."""

    def __init__(self, answer: Callable[[Json], Awaitable[Any]] | None = None) -> None:
        self.told: list[tuple[str, Json]] = []
        self.asked: list[Json] = []
        self._answer = answer
        self._may = anyio.Event()
        self._may.set()

    def hold(self) -> None:
        self._may = anyio.Event()

    def go(self) -> None:
        self._may.set()

    @property
    def updates(self) -> list[Json]:
        return [params["update"] for method, params in self.told if method == "session/update"]

    async def notify(self, method: str, params: Json) -> None:
        self.told.append((method, params))
        await self._may.wait()

    async def ask(self, method: str, params: Json) -> Any:
        self.told.append((method, params))
        self.asked.append(params)
        assert self._answer is not None
        return await self._answer(params)
