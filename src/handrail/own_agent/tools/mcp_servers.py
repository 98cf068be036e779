"""One MCP server of a session, called from wherever, connected anew when it has gone away.

Owns what a call's caller may expect: that giving up takes effect at once, that a server which died is tried again on
its next use, once, and that what may have been heard is never sent twice. It does not know what a tool is to the model
(remote.py).

One connection to an MCP server, from the attempt on until it is gone.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
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
from handrail.own_agent.tools.mcp_transport import OURS, Http, Wanted, transport

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


Answer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
PATIENCE = 15.0
"""Seconds that a prompt waits for a server which is slow to start; its tools come when it is there."""
_WAKE = 0.5
"""Seconds for a broken connection to say how it broke, which is known a moment after that it did."""
_CUT = ("Connection closed", "SSE stream ")
"""How the SDK says that no answer will come; servers have the same code for errors of their own."""
_FORGOTTEN = ("session terminated", "session not found")
"""What servers say over HTTP that were started anew since we greeted them: nothing was done."""


class Unanswered(Exception):
    """A call got no answer: what is known of why, as a sentence."""


class Server:
    """One server. `group` outlives every call on it."""

    def __init__(self, wanted: Wanted, cwd: str, group: TaskGroup) -> None:
        self.name = wanted.name
        self.is_ours = wanted.name == OURS
        self._wanted, self._cwd, self._group = wanted, cwd, group
        self._waited = False
        self._link = self._begun(())

    @property
    def tools(self) -> tuple[types.Tool, ...]:
        return self._link.tools

    @property
    def instructions(self) -> str:
        return self._link.instructions

    @property
    def problem(self) -> str:
        """Why it is not connected; empty where it is."""
        return self._link.problem if self._link.settled.is_set() else "it has not answered yet"

    async def settled(self) -> None:
        """It is connected, or will not be, or has been waited for long enough, once: it may still come.

        Ours is tried again where it was not to be had, and waited for each time: without it little can be done.
        """
        if self.is_ours and not self.tools and self._link.over.is_set():
            self._link = self._begun(())
        if self.is_ours or not self._waited:
            with anyio.move_on_after(PATIENCE):
                await self._link.settled.wait()
        self._waited = True

    async def call(self, tool: str, input: dict[str, Any], progress: ProgressFnT) -> Answer:
        """Its answer. Raises Unanswered.

        Whoever is cancelled here goes on at once; the server is told aside.
        """
        try:
            return await self._once(tool, input, progress)
        except _Lost as lost:
            if not lost.unheard:
                raise Unanswered(
                    f"{self} went away while this ran: it is not known how far it came."
                ) from None
        try:
            return await self._once(tool, input, progress)
        except _Lost:
            raise Unanswered(f"{self} went away again while this ran.") from None

    def __str__(self) -> str:
        return f"The MCP server “{self.name}”"

    async def _once(self, tool: str, input: dict[str, Any], progress: ProgressFnT) -> Answer:
        link = await self._standing()
        session = link.session
        if session is None:
            raise Unanswered(f"{self} cannot be reached: {link.problem}.")
        asked = _Asked()
        self._group.start_soon(_put, session, asked, tool, input, progress)
        try:
            await asked.done.wait()
        finally:
            asked.scope.cancel()
        if asked.answer is None:
            raise await self._judged(asked.problem, link)
        return asked.answer

    async def _standing(self) -> Link:
        """The connection, made now where there is none any more."""
        if self._link.over.is_set():
            self._link = self._begun(self.tools)
        link = self._link
        await link.settled.wait()
        return link

    def _begun(self, tools: tuple[types.Tool, ...]) -> Link:
        link = Link(self._wanted, self._cwd, tools)
        self._group.start_soon(link.keep)
        return link

    async def _judged(self, problem: Exception | None, link: Link) -> "Unanswered | _Lost":
        match problem:
            case MCPError(code=types.CONNECTION_CLOSED, message=str(words)) if words.startswith(_CUT):
                with anyio.move_on_after(_WAKE):
                    await link.gone.wait()
                return _Lost(unheard=link.never_reached)
            case MCPError(message=str(words)) if words.lower() in _FORGOTTEN:
                link.over.set()
                return _Lost(unheard=True)
            case MCPError(message=str(words)):
                return Unanswered(f"{self} answered with an error: {words}")
            case ValidationError():
                return Unanswered(f"{self} answered with something that the protocol does not have.")
            case None:
                return Unanswered(f"{self} was not asked: the session is over.")
            case _:
                return Unanswered(f"{self} could not be asked: {problem}")


class _Lost(Exception):
    """The connection ended under a call."""

    def __init__(self, *, unheard: bool) -> None:
        super().__init__()
        self.unheard = unheard
        """The server cannot have seen it."""


@dataclass(slots=True)
class _Asked:
    """A request, in a task that can outlast its caller by the time it takes to tell the server."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None
    problem: Exception | None = None


async def _put(
    session: ClientSession, asked: _Asked, tool: str, input: dict[str, Any], progress: ProgressFnT
) -> None:
    params = types.CallToolRequestParams(name=tool, arguments=input)
    try:
        with asked.scope:
            asked.answer = await session.send_request(
                types.CallToolRequest(params=params), _ANSWER, progress_callback=progress
            )
    except Exception as problem:  # for the caller to judge; this task's group is everybody's
        asked.problem = problem
    finally:
        asked.done.set()
