"""Routing of session updates and agent requests to the handler of their session.

Updates that arrive before `session/new` is answered are buffered: an agent may send them first. This module
does not know how messages arrive.
"""

import logging
from collections.abc import Mapping
from typing import Protocol, cast

import anyio

from handrail.store.values import Json


class SessionHandler(Protocol):
    """The host's side of one session."""

    def update(self, update: Json) -> None:
        """Record one update; called in the order of arrival. Not async: an awaiting update would be overtaken
        by the next."""
        ...

    async def serve(self, method: str, params: Json) -> Json | None:
        """Serve a request of the agent (`fs/*`, `terminal/*`, `session/request_permission`, `elicitation/*`).

        Raises the SDK's RequestError, which becomes the agent's error response.
        """
        ...

    def lost(self, why: str) -> None:
        """The agent's program has ended, for this reason."""
        ...


log = logging.getLogger(__name__)

EARLY_BYTES = 4 << 20
"""Bytes of updates buffered for sessions that are being opened; further updates are dropped."""
OPENING_SECONDS = 30.0
"""Seconds that a request of such a session waits for the session to open."""


REPLAYED = frozenset(
    (
        *("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"),
        *("tool_call", "tool_call_update", "plan"),
    )
)
"""Updates with the content of a conversation."""
QUIET_SECONDS = 0.25
"""Silence after which the replay of a loaded session is over: Gemini CLI goes on with it after its answer."""
REPLAY_SECONDS = 5.0
"""Bounds how long a prompt waits for the end of a replay."""


class NoSession(Exception):
    """The agent named a session that is not open."""


class SessionRouter:
    """The open sessions of one agent program."""

    def __init__(self) -> None:
        self._handlers: dict[str, SessionHandler] = {}
        self._muted: set[str] = set()
        self._replays: dict[str, anyio.Event] = {}
        """Loaded sessions whose agent may still replay their history; set when it does."""
        self._early: list[tuple[str, Json]] = []
        self._early_bytes = 0
        self._opening = 0
        self._changed = anyio.Event()

    @property
    def known(self) -> Mapping[str, SessionHandler]:
        return self._handlers

    def add(
        self, session: str, handler: SessionHandler, *, muted: bool = False, replays: bool = False
    ) -> None:
        """Register a handler. While `muted`, updates are dropped: the agent replays its history when it loads a
        session. With `replays`, that may go on, and content is dropped until `finish_replay` returns."""
        self._handlers[session] = handler
        self._muted.discard(session)
        if muted:
            self._muted.add(session)
        if replays:
            self._replays[session] = anyio.Event()
        early, self._early = self._early, [it for it in self._early if it[0] != session]
        for owner, update in early:
            if owner == session and not muted:
                _deliver_update(handler, update)
        self._notify_waiters()

    def drop(self, session: str) -> None:
        self._handlers.pop(session, None)
        self._muted.discard(session)
        self._replays.pop(session, None)

    def update(self, params: Json, size: int = 0) -> None:
        """Pass an update of `size` bytes to its session's handler, synchronously."""
        session, update = params.get("sessionId"), params.get("update")
        if not isinstance(session, str) or not isinstance(update, dict):
            return
        handler, body = self._handlers.get(session), cast("Json", update)
        if handler is not None:
            if (replay := self._replays.get(session)) is not None and body.get("sessionUpdate") in REPLAYED:
                replay.set()
            elif session not in self._muted:
                _deliver_update(handler, body)
        elif self._opening and self._early_bytes + size <= EARLY_BYTES:
            self._early.append((session, body))
            self._early_bytes += size

    async def finish_replay(self, session: str) -> None:
        """Wait until the agent replays no more of a loaded session, then deliver content again; bounded."""
        with anyio.move_on_after(REPLAY_SECONDS):
            is_quiet = False
            while not is_quiet:
                self._replays[session] = anyio.Event()
                with anyio.move_on_after(QUIET_SECONDS) as silence:
                    await self._replays[session].wait()
                is_quiet = silence.cancelled_caught
        self._replays.pop(session, None)

    async def serve(self, method: str, params: Json) -> Json | None:
        """Pass a request to its session's handler. Raises NoSession."""
        session = params.get("sessionId")
        with anyio.move_on_after(OPENING_SECONDS):
            while session not in self._handlers and self.opening:
                await self._changed.wait()
        handler = self._handlers.get(session) if isinstance(session, str) else None
        if handler is None:
            raise NoSession
        return await handler.serve(method, params)

    @property
    def opening(self) -> int:
        """Number of sessions that are being opened."""
        return self._opening

    @opening.setter
    def opening(self, count: int) -> None:
        self._opening = count
        if not count:
            self._early, self._early_bytes = [], 0
        self._notify_waiters()

    def lost(self, why: str) -> None:
        """The program has ended: notify and drop every session."""
        handlers, self._handlers = self._handlers, {}
        for handler in handlers.values():
            handler.lost(why)

    def _notify_waiters(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def _deliver_update(handler: SessionHandler, update: Json) -> None:
    """An update that raises must not end the connection to the agent."""
    try:
        handler.update(update)
    except Exception:
        log.exception("an update of an agent could not be recorded")
