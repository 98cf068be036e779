"""Which session's updates and requests go to which desk.

Owns the desks by session id, and what an agent says of a session before we have been told that it exists: an agent may
do so before it answers `session/new`, or in the same breath. Does not know how messages come.

What a session offers its agent: somebody who takes down what it says, and does what it asks for.
"""

import logging
from collections.abc import Mapping
from typing import Protocol, cast

import anyio

from handrail.store.values import Json


class Desk(Protocol):
    """Our side of one session."""

    def update(self, update: Json) -> None:
        """Take an update down, in the order they came. Never awaits: what awaits is overtaken by the next one."""
        ...

    async def serve(self, method: str, params: Json) -> Json | None:
        """Do what the agent asks for (`fs/*`, `terminal/*`, `session/request_permission`, `elicitation/*`).

        Raises acp's RequestError with what the agent shall be told.
        """
        ...

    def lost(self, why: str) -> None:
        """The agent's program is gone."""
        ...


log = logging.getLogger(__name__)

EARLY_BYTES = 4 << 20
"""Of updates about sessions that are just being opened; what comes beyond that is dropped."""
OPENING_SECONDS = 30.0
"""How long a request of such a session waits for its opening."""


class NoSession(Exception):
    """The agent asks for something in a session that is not open."""


class Desks:
    """The sessions of one agent's program that are open."""

    def __init__(self) -> None:
        self._desks: dict[str, Desk] = {}
        self._muted: set[str] = set()
        self._early: list[tuple[str, Json]] = []
        self._early_bytes = 0
        self._opening = 0
        self._bell = anyio.Event()

    @property
    def known(self) -> Mapping[str, Desk]:
        return self._desks

    def add(self, session: str, desk: Desk, *, muted: bool = False) -> None:
        """From now on. What is said while it is `muted` is what was said before, read out once more."""
        self._desks[session] = desk
        self._muted.discard(session)
        if muted:
            self._muted.add(session)
        early, self._early = self._early, [it for it in self._early if it[0] != session]
        for of, update in early:
            if of == session and not muted:
                _tell(desk, update)
        self._ring()

    def drop(self, session: str) -> None:
        self._desks.pop(session, None)
        self._muted.discard(session)

    def update(self, params: Json, size: int = 0) -> None:
        """Give an update, of so many bytes, to whom it concerns, at once."""
        session, update = params.get("sessionId"), params.get("update")
        if not isinstance(session, str) or not isinstance(update, dict):
            return
        desk, told = self._desks.get(session), cast("Json", update)
        if desk is not None:
            if session not in self._muted:
                _tell(desk, told)
        elif self._opening and self._early_bytes + size <= EARLY_BYTES:
            self._early.append((session, told))
            self._early_bytes += size

    async def serve(self, method: str, params: Json) -> Json | None:
        """Have a request done at the desk of its session. Raises NoSession."""
        session = params.get("sessionId")
        with anyio.move_on_after(OPENING_SECONDS):
            while session not in self._desks and self.opening:
                await self._bell.wait()
        desk = self._desks.get(session) if isinstance(session, str) else None
        if desk is None:
            raise NoSession
        return await desk.serve(method, params)

    @property
    def opening(self) -> int:
        """How many sessions are being opened."""
        return self._opening

    @opening.setter
    def opening(self, count: int) -> None:
        self._opening = count
        if not count:
            self._early, self._early_bytes = [], 0
        self._ring()

    def lost(self, why: str) -> None:
        """The program is gone, and every session with it."""
        desks, self._desks = self._desks, {}
        for desk in desks.values():
            desk.lost(why)

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()


def _tell(desk: Desk, update: Json) -> None:
    """One update that a desk stumbles over must not cost the agent its line."""
    try:
        desk.update(update)
    except Exception:
        log.exception("an update of an agent could not be taken down")
