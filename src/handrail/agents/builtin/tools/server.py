"""One MCP server of a session, called from wherever, connected anew when it has gone away.

Owns what a call's caller may expect: that giving up takes effect at once, that a server which died is tried again on
its next use, once, and that what may have been heard is never sent twice. It does not know what a tool is to the model
(remote.py).
"""

from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from handrail.agents.builtin.tools.link import Link
from handrail.agents.builtin.tools.wanted import OURS, Wanted

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
