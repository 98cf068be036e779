"""Connections to the MCP servers of a session, with reconnection.

A cancelled caller returns immediately. A server that died is reconnected on its next use, once. A request
that the server may have received is never sent twice.
"""

import logging
from collections.abc import Iterable
from dataclasses import field
from typing import Any, cast

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic import TypeAdapter, ValidationError

from handrail import __version__
from handrail.lazy_dataclass import dataclass
from handrail.own_agent.tools.mcp_transport import OURS, Http, ServerConfig, open_transport

CONNECT_SECONDS = 120.0
"""Seconds for a server to start, answer the handshake and list its tools: some are downloaded first."""
MOST_TOOLS = 500
"""Tools per server; bounds memory and the model's context if a list never ends."""
_CLIENT_INFO = types.Implementation(name="handrail-agent", title="Handrail's agent", version=__version__)
_MEANING = {401: " (not signed in)", 403: " (forbidden)", 404: " (nothing is there)"}
_log = logging.getLogger(__name__)


class ServerConnection:
    """One connection to a server, from the attempt to its end."""

    def __init__(self, server: ServerConfig, cwd: str, tools: tuple[types.Tool, ...] = ()) -> None:
        self.settled = anyio.Event()
        """Set when it is connected or has failed."""
        self.over = anyio.Event()
        """Set when no more requests can be sent."""
        self.gone = anyio.Event()
        """Set when its process and sockets are closed."""
        self.session: ClientSession | None = None
        """The MCP session while connected."""
        self.tools = tools
        """The server's tools; until it has listed them, those of the previous connection."""
        self.instructions = ""
        self.problem = ""
        """Why it is not connected."""
        self.never_reached = False
        """The server could not be reached, so it has not received the last request."""
        self._server, self._cwd = server, cwd
        self._status = 0

    async def keep(self) -> None:
        """Connect, and hold the connection until the server or the session ends."""
        try:
            async with (
                open_transport(self._server, self._cwd, self._on_status) as (read, write),
                ClientSession(
                    dispatcher=_Dispatcher(read, write, over=self.over),
                    client_info=_CLIENT_INFO,
                    message_handler=self._on_message,
                ) as session,
            ):
                with anyio.fail_after(CONNECT_SECONDS):
                    await self._handshake(session)
                    self.tools = tuple(await _list_tools(session))
                self.session = session
                self.settled.set()
                await self.over.wait()
        except Exception as problem:  # a failing server must not end the session
            self._record_failure(problem)
        finally:
            self.session = None
            self.problem = self.problem or "it has ended"
            for event in (self.over, self.settled, self.gone):
                event.set()

    async def _handshake(self, session: ClientSession) -> None:
        """Perform the handshake.

        HTTP servers get `discover` first: it keeps no session state that a restart could lose. Programs get
        `initialize` first, since old ones may answer nothing else.
        """
        if isinstance(self._server, Http):
            try:
                await session.discover()
            except (MCPError, RuntimeError, ValueError):
                await session.initialize()
        else:
            try:
                await session.initialize()
            except MCPError as refused:
                if refused.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                    raise
                await session.discover()
        self.instructions = session.instructions or ""

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification) and self.session is not None:
            self.tools = tuple(await _list_tools(self.session))

    def _on_status(self, status: int) -> None:
        self._status = status

    def _record_failure(self, problem: Exception) -> None:
        causes = list(_causes(problem))
        unheard = (httpx2.ConnectError, httpx2.ConnectTimeout)
        self.never_reached = bool(causes) and all(isinstance(cause, unheard) for cause in causes)
        self.problem = self._sentence(causes[0] if causes else problem)
        _log.info("MCP server %r: %s", self._server.name, self.problem)

    def _sentence(self, cause: BaseException) -> str:
        match cause:
            case TimeoutError():
                return f"it did not answer within {CONNECT_SECONDS:g} s"
            case httpx2.ConnectError() | httpx2.ConnectTimeout():
                return "nobody listens at its address"
            case MCPError() if self._status >= 400:
                return f"it answers with HTTP {self._status}{_MEANING.get(self._status, '')}"
            case MCPError(code=types.CONNECTION_CLOSED):
                return "it ended before it had answered"
            case OSError(strerror=str(words), filename=name):
                return f"{words}: {name}" if name else words
            case _:
                return str(cause) or type(cause).__name__


class _Dispatcher(JSONRPCDispatcher[TransportContext]):
    """JSON-RPC dispatcher that sets an event when the connection ends."""

    def __init__(self, read: Any, write: Any, *, over: anyio.Event) -> None:
        super().__init__(read, write)
        self._over = over

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._over.set()


async def _list_tools(session: ClientSession) -> list[types.Tool]:
    if session.server_capabilities is None or session.server_capabilities.tools is None:
        return []
    tools: list[types.Tool] = []
    cursor: str | None = None
    while len(tools) < MOST_TOOLS:
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or not page.tools:
            break
    return tools[:MOST_TOOLS]


def _causes(problem: BaseException) -> Iterable[BaseException]:
    """The underlying exceptions, unwrapped from exception groups."""
    if isinstance(problem, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", problem).exceptions:
            yield from _causes(each)
    else:
        yield problem


Answer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
PATIENCE = 15.0
"""Seconds that a prompt waits for a slow server; its tools appear when it is connected."""
_CAUSE_SECONDS = 0.5
"""Seconds to wait for the cause of a broken connection, which arrives a moment later."""
_CONNECTION_LOST = ("Connection closed", "SSE stream ")
"""How the SDK's messages for a lost connection begin; servers use the same error code for their own errors."""
_SESSION_LOST = ("session terminated", "session not found")
"""Errors of an HTTP server that was restarted since the handshake: the request was not executed."""


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
    def tools(self) -> tuple[types.Tool, ...]:
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

    async def call(self, tool: str, input: dict[str, Any], progress: ProgressFnT) -> Answer:
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

    async def _try_call(self, tool: str, input: dict[str, Any], progress: ProgressFnT) -> Answer:
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

    def _connect(self, tools: tuple[types.Tool, ...]) -> ServerConnection:
        link = ServerConnection(self._wanted, self._cwd, tools)
        self._group.start_soon(link.keep)
        return link

    async def _failure(
        self, problem: Exception | None, link: ServerConnection
    ) -> "Unanswered | _ConnectionLost":
        match problem:
            case MCPError(code=types.CONNECTION_CLOSED, message=str(words)) if words.startswith(
                _CONNECTION_LOST
            ):
                with anyio.move_on_after(_CAUSE_SECONDS):
                    await link.gone.wait()
                return _ConnectionLost(unheard=link.never_reached)
            case MCPError(message=str(words)) if words.lower() in _SESSION_LOST:
                link.over.set()
                return _ConnectionLost(unheard=True)
            case MCPError(message=str(words)):
                return Unanswered(f"{self} answered with an error: {words}")
            case ValidationError():
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
    answer: Answer | None = None
    problem: Exception | None = None


async def _send(
    session: ClientSession, pending: _PendingCall, tool: str, input: dict[str, Any], progress: ProgressFnT
) -> None:
    params = types.CallToolRequestParams(name=tool, arguments=input)
    try:
        with pending.scope:
            pending.answer = await session.send_request(
                types.CallToolRequest(params=params), _ANSWER, progress_callback=progress
            )
    except Exception as problem:  # the caller handles it; raising here would cancel the whole group
        pending.problem = problem
    finally:
        pending.done.set()
