"""One connection to an MCP server, from the attempt on until it is gone.

Owns the greeting in either generation of the protocol, what the server offers, and how long all this may take. The
connection is made and ended in the task that runs `keep`, whatever becomes of those who use it. It does not know what
is called on it, nor who makes a new one after it (server.py).
"""

import logging
from collections.abc import Iterable
from typing import Any, cast

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskStatus
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from handrail import __version__
from handrail.agents.builtin.tools.transport import transport
from handrail.agents.builtin.tools.wanted import Http, Wanted

CONNECT_SECONDS = 120.0
"""For a server to start, to greet us and to say what it offers: some are fetched first."""
MOST_TOOLS = 500
"""Of one server: a list without an end must not fill the memory, nor the model's context."""
_WE_ARE = types.Implementation(name="handrail-agent", title="Handrail's agent", version=__version__)
_MEANING = {401: " (not signed in)", 403: " (forbidden)", 404: " (nothing is there)"}
_log = logging.getLogger(__name__)


class Link:
    """An attempt to connect, and what came of it."""

    def __init__(self, server: Wanted, cwd: str, tools: tuple[types.Tool, ...] = ()) -> None:
        self.settled = anyio.Event()
        """It stands, or will not."""
        self.over = anyio.Event()
        """Nothing more can be asked on it."""
        self.gone = anyio.Event()
        """Its process and its sockets are no more."""
        self.session: ClientSession | None = None
        """Once it stands, and while it does."""
        self.tools = tools
        """What the server offers; until it has said so, what it offered before."""
        self.instructions = ""
        self.problem = ""
        """Why it does not stand."""
        self.never_reached = False
        """It broke because nobody listens: what was asked last has not been heard by anybody."""
        self._server, self._cwd = server, cwd
        self._status = 0

    async def keep(self) -> None:
        """Connect, and hold the connection until the server or the session ends."""
        try:
            async with (
                transport(self._server, self._cwd, self._answered) as (read, write),
                ClientSession(
                    dispatcher=_Line(read, write, over=self.over),
                    client_info=_WE_ARE,
                    message_handler=self._told,
                ) as session,
            ):
                with anyio.fail_after(CONNECT_SECONDS):
                    await self._greet(session)
                    self.tools = tuple(await _listed(session))
                self.session = session
                self.settled.set()
                await self.over.wait()
        except Exception as problem:  # whatever one server does, the session goes on
            self._broke(problem)
        finally:
            self.session = None
            self.problem = self.problem or "it has ended"
            for event in (self.over, self.settled, self.gone):
                event.set()

    async def _greet(self, session: ClientSession) -> None:
        """Over HTTP the newer generation is tried first: it has no state there that a restart could lose. Programs
        are greeted as they have always been, since old ones may not answer to anything else."""
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

    async def _told(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification) and self.session is not None:
            self.tools = tuple(await _listed(self.session))

    def _answered(self, status: int) -> None:
        self._status = status

    def _broke(self, problem: Exception) -> None:
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


class _Line(JSONRPCDispatcher[TransportContext]):
    """The protocol's messages; says when there will be no more."""

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


async def _listed(session: ClientSession) -> list[types.Tool]:
    if session.server_capabilities is None or session.server_capabilities.tools is None:
        return []
    found: list[types.Tool] = []
    cursor: str | None = None
    while len(found) < MOST_TOOLS:
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = page.next_cursor
        if not cursor or not page.tools:
            break
    return found[:MOST_TOOLS]


def _causes(problem: BaseException) -> Iterable[BaseException]:
    """What really went wrong, out of the groups that tasks report it in."""
    if isinstance(problem, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", problem).exceptions:
            yield from _causes(each)
    else:
        yield problem
