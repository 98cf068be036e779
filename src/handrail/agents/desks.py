"""Which session's updates and requests go to which desk.

Owns the desks by session id, and what an agent says of a session before we have been told that it exists: an agent may
do so before it answers `session/new`, or in the same breath. Does not know how messages come.
"""

from collections import deque
from collections.abc import Mapping
from typing import cast

import anyio

from handrail.agents.desk import Desk
from handrail.store.value import Json

EARLY_MAX = 1000
"""Updates kept of sessions that nobody has opened yet; the oldest go first."""
OPENING_SECONDS = 30.0
"""How long a request of such a session waits for its opening."""


class NoSession(Exception):
    """The agent asks for something in a session that is not open."""


class Desks:
    """The sessions of one agent's program that are open."""

    def __init__(self) -> None:
        self._desks: dict[str, Desk] = {}
        self._muted: set[str] = set()
        self._early: deque[tuple[str, Json]] = deque(maxlen=EARLY_MAX)
        self._opening = 0
        self._bell = anyio.Event()

    @property
    def known(self) -> Mapping[str, Desk]:
        return self._desks

    def add(self, session: str, desk: Desk, *, muted: bool = False) -> None:
        """From now on. What is said while it is `muted` is what was said before, read out once more."""
        self._desks[session] = desk
        self._muted.discard(session)
        early, self._early = self._early, deque(maxlen=EARLY_MAX)
        if muted:
            self._muted.add(session)
        for of, update in early:
            if of != session:
                self._early.append((of, update))
            elif not muted:
                desk.update(update)
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    def drop(self, session: str) -> None:
        self._desks.pop(session, None)
        self._muted.discard(session)

    def update(self, params: Json) -> None:
        """Give an update to whom it concerns, at once."""
        session, update = params.get("sessionId"), params.get("update")
        if not isinstance(session, str) or not isinstance(update, dict):
            return
        desk, told = self._desks.get(session), cast("Json", update)
        if desk is None:
            self._early.append((session, told))
        elif session not in self._muted:
            desk.update(told)

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
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    def lost(self, why: str) -> None:
        """The program is gone, and every session with it."""
        desks, self._desks = self._desks, {}
        for desk in desks.values():
            desk.lost(why)
