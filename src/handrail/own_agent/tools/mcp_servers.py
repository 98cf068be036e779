"""Connections to the MCP servers of a session, with reconnection.

A cancelled caller returns immediately. A server that died is reconnected on its next use, once. A request
that the server may have received is never sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING, cast

import anyio

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.slow_import import import_slowly
from handrail.own_agent.tools.mcp_session import (
    ConnectionClosed,
    InvalidAnswer,
    McpSession,
    Progress,
    ServerError,
    SessionEvents,
    ToolSpec,
)
from handrail.own_agent.tools.own_server_session import open_own_session
from handrail.own_agent.tools.server_config import OURS, ServerConfig, Stdio

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from handrail.own_agent.tools.agent_tool import Json

CONNECT_SECONDS = 120.0
"""Seconds for a server to start, answer the handshake and list its tools: some are downloaded first."""
_MEANING = {401: " (not signed in)", 403: " (forbidden)", 404: " (nothing is there)"}
_log = logging.getLogger(__name__)


class ServerConnection:
    """One connection to a server, from the attempt to its end."""

    def __init__(self, server: ServerConfig, cwd: str, tools: tuple[ToolSpec, ...] = ()) -> None:
        self.settled = anyio.Event()
        """Set when it is connected or has failed."""
        self.over = anyio.Event()
        """Set when no more requests can be sent."""
        self.gone = anyio.Event()
        """Set when its process and sockets are closed."""
        self.session: McpSession | None = None
        """The MCP session while connected."""
        self.tools = tools
        """The server's tools; until it has listed them, those of the previous connection."""
        self.instructions = ""
        self.problem = ""
        """Why it is not connected."""
        self.never_reached = False
        """The server could not be reached, so it has not received the last request."""
        self._server, self._cwd = server, cwd
        self._changed = anyio.Event()
        self._status = 0

    async def keep(self) -> None:
        """Connect, and hold the connection until the server or the session ends."""
        events = SessionEvents(
            ended=self.over.set, tools_changed=self._mark_changed, http_status=self._set_status
        )
        try:
            async with _open_session(self._server, self._cwd, events) as session:
                with anyio.fail_after(CONNECT_SECONDS):
                    await session.shake_hands()
                    self.instructions = session.instructions
                    self.tools = tuple(await session.list_tools())
                self.session = session
                self.settled.set()
                async with anyio.create_task_group() as group:
                    group.start_soon(self._follow_tools, session)
                    await self.over.wait()
                    group.cancel_scope.cancel()
        except Exception as problem:  # a failing server must not end the session
            self._record_failure(problem)
        finally:
            self.session = None
            self.problem = self.problem or "it has ended"
            for event in (self.over, self.settled, self.gone):
                event.set()

    async def _follow_tools(self, session: McpSession) -> None:
        """List the tools again whenever they have changed."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            self.tools = tuple(await session.list_tools())

    def _mark_changed(self) -> None:
        self._changed.set()

    def _set_status(self, status: int) -> None:
        self._status = status

    def _record_failure(self, problem: Exception) -> None:
        import httpx2  # noqa: PLC0415 - slow import

        causes = list(_causes(problem))
        unheard = (httpx2.ConnectError, httpx2.ConnectTimeout)
        self.never_reached = bool(causes) and all(isinstance(cause, unheard) for cause in causes)
        self.problem = (
            "nobody listens at its address"
            if self.never_reached
            else self._sentence(causes[0] if causes else problem)
        )
        _log.info("MCP server %r: %s", self._server.name, self.problem)

    def _sentence(self, cause: BaseException) -> str:
        match cause:
            case TimeoutError():
                return f"it did not answer within {CONNECT_SECONDS:g} s"
            case ServerError() | ConnectionClosed() if self._status >= 400:
                return f"it answers with HTTP {self._status}{_MEANING.get(self._status, '')}"
            case ConnectionClosed():
                return "it ended before it had answered"
            case OSError(strerror=str(words), filename=name):
                return f"{words}: {name}" if name else words
            case _:
                return str(cause) or type(cause).__name__


@asynccontextmanager
async def _open_session(server: ServerConfig, cwd: str, events: SessionEvents) -> AsyncGenerator[McpSession]:
    """A session with our own server without the SDK, which takes long to import; with any other through the SDK."""
    if isinstance(server, Stdio) and server.name == OURS:
        async with open_own_session(server, cwd, events) as session:
            yield session
        return
    await import_slowly("handrail.own_agent.tools.sdk_session")
    from handrail.own_agent.tools.sdk_session import open_sdk_session  # noqa: PLC0415 - imported by now

    async with open_sdk_session(server, cwd, events) as session:
        yield session


def _causes(problem: BaseException) -> Iterable[BaseException]:
    """The underlying exceptions, unwrapped from exception groups."""
    if isinstance(problem, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", problem).exceptions:
            yield from _causes(each)
    else:
        yield problem


PATIENCE = 15.0
"""Seconds that a prompt waits for a slow server; its tools appear when it is connected."""
_CAUSE_SECONDS = 0.5
"""Seconds to wait for the cause of a broken connection, which arrives a moment later."""


class Unanswered(Exception):
    """A call got no answer; the message is a sentence with the reason."""


class Server:
    """One server. `group` must outlive every call."""

    def __init__(self, wanted: ServerConfig, cwd: str, group: TaskGroup) -> None:
        self.name = wanted.name
        self.is_ours = wanted.name == OURS
        self._wanted, self._cwd, self._group = wanted, cwd, group
        self._waited = False
        self._link = self._connect(())

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._link.tools

    @property
    def instructions(self) -> str:
        return self._link.instructions

    @property
    def problem(self) -> str:
        """Why it is not connected; empty if it is."""
        return self._link.problem if self._link.settled.is_set() else "it has not answered yet"

    async def settled(self) -> None:
        """Wait until the server is connected or has failed, at most PATIENCE seconds and only once.

        Our own server is reconnected if it failed, and waited for each time: little works without it.
        """
        if self.is_ours and not self.tools and self._link.over.is_set():
            self._link = self._connect(())
        if self.is_ours or not self._waited:
            with anyio.move_on_after(PATIENCE):
                await self._link.settled.wait()
        self._waited = True

    async def call(self, tool: str, input: Json, progress: Progress) -> Json:
        """Call a tool and return its answer. Raises Unanswered.

        A cancelled caller returns immediately; a background task notifies the server.
        """
        try:
            return await self._try_call(tool, input, progress)
        except _ConnectionLost as lost:
            if not lost.unheard:
                raise Unanswered(
                    f"{self} went away while this ran: it is not known how far it came."
                ) from None
        try:
            return await self._try_call(tool, input, progress)
        except _ConnectionLost:
            raise Unanswered(f"{self} went away again while this ran.") from None

    def __str__(self) -> str:
        return f"The MCP server “{self.name}”"

    async def _try_call(self, tool: str, input: Json, progress: Progress) -> Json:
        link = await self._connected()
        session = link.session
        if session is None:
            raise Unanswered(f"{self} cannot be reached: {link.problem}.")
        pending = _PendingCall()
        self._group.start_soon(_send, session, pending, tool, input, progress)
        try:
            await pending.done.wait()
        finally:
            pending.scope.cancel()
        if pending.answer is None:
            raise await self._failure(pending.problem, link)
        return pending.answer

    async def _connected(self) -> ServerConnection:
        """The connection; reconnects if it has ended."""
        if self._link.over.is_set():
            self._link = self._connect(self.tools)
        link = self._link
        await link.settled.wait()
        return link

    def _connect(self, tools: tuple[ToolSpec, ...]) -> ServerConnection:
        link = ServerConnection(self._wanted, self._cwd, tools)
        self._group.start_soon(link.keep)
        return link

    async def _failure(
        self, problem: Exception | None, link: ServerConnection
    ) -> Unanswered | _ConnectionLost:
        match problem:
            case ConnectionClosed(unheard=True):
                link.over.set()
                return _ConnectionLost(unheard=True)
            case ConnectionClosed():
                with anyio.move_on_after(_CAUSE_SECONDS):
                    await link.gone.wait()
                return _ConnectionLost(unheard=link.never_reached)
            case ServerError():
                return Unanswered(f"{self} answered with an error: {problem}")
            case InvalidAnswer():
                return Unanswered(f"{self} answered with something that the protocol does not have.")
            case None:
                return Unanswered(f"{self} was not asked: the session is over.")
            case _:
                return Unanswered(f"{self} could not be asked: {problem}")


class _ConnectionLost(Exception):
    """The connection ended during a call."""

    def __init__(self, *, unheard: bool) -> None:
        super().__init__()
        self.unheard = unheard
        """The server cannot have received the request."""


@dataclass(slots=True)
class _PendingCall:
    """A request in its own task, which may outlive a cancelled caller while it notifies the server."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Json | None = None
    problem: Exception | None = None


async def _send(
    session: McpSession, pending: _PendingCall, tool: str, input: Json, progress: Progress
) -> None:
    try:
        with pending.scope:
            pending.answer = await session.call(tool, input, progress)
    except Exception as problem:  # the caller handles it; raising here would cancel the whole group
        pending.problem = problem
    finally:
        pending.done.set()
