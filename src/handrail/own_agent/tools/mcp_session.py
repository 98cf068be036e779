"""A session with an MCP server, as `mcp_servers` uses it: its tools, its calls, and how they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handrail.own_agent.tools.agent_tool import Json

MOST_TOOLS = 500
"""Tools per server; bounds memory and the model's context if a list never ends."""


class Progress(Protocol):
    """Called with the progress of a call."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as its server lists it."""

    name: str
    title: str | None
    description: str | None
    input_schema: Json


class ServerError(Exception):
    """The server answered a request with an error."""


class InvalidAnswer(Exception):
    """The server's answer is not what the protocol allows."""


class ConnectionClosed(Exception):
    """The connection ended before the answer came."""

    def __init__(self, *, unheard: bool = False) -> None:
        super().__init__()
        self.unheard = unheard
        """The server cannot have executed the request."""


class McpSession(Protocol):
    """A session with a server. Each method raises ServerError, InvalidAnswer or ConnectionClosed."""

    @property
    def instructions(self) -> str: ...

    async def shake_hands(self) -> None: ...

    async def list_tools(self) -> Sequence[ToolSpec]:
        """At most MOST_TOOLS."""
        ...

    async def call(self, tool: str, input: Json, progress: Progress) -> Json:
        """The result in JSON. If the caller is cancelled, the server is told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvents:
    """What a session reports while it is open. None of these may block."""

    ended: Callable[[], None]
    """No more requests can be sent."""
    tools_changed: Callable[[], None]
    http_status: Callable[[int], None]
