"""The tools that each client is told about, and the notification when others are there than it knows.

Some tools are there only at times, such as those of an editor that has the client's folder open.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from handrail.gate.tool import Toolbox
from handrail.lazy_dataclass import dataclass
from handrail.server.mcp.tasks import CAPABILITY, EXTENSION
from handrail.store.bell import Bell
from handrail.store.values import Caller

NOTIFY_SECONDS = 1.0
"""Time to send a notification. A client that does not read must not delay the others for longer."""


class ChangingServer(Server[Any]):
    """An SDK server whose tools change. It says so in its capabilities, which include those of `more`."""

    more: Callable[[], list[str]] | None = None
    """The capabilities of the servers behind this one."""
    has_tasks: bool = False

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        own = super().get_capabilities(
            notification_options, experimental_capabilities, extensions, protocol_version=protocol_version
        )
        known: dict[str, object] = {
            "resources": types.ResourcesCapability(subscribe=True, list_changed=True),
            "prompts": types.PromptsCapability(list_changed=True),
            "completions": types.CompletionsCapability(),
            "logging": types.LoggingCapability(),
        }
        names = self.more() if self.more is not None else []
        tasks: dict[str, object] = {}
        if self.has_tasks:
            is_modern = protocol_version in MODERN_PROTOCOL_VERSIONS
            tasks = {"extensions": {EXTENSION: {}}} if is_modern else {"tasks": CAPABILITY}
        return own.model_copy(update={name: known[name] for name in names} | tasks)


@dataclass(frozen=True, slots=True)
class _Told:
    """A client, and the tools that it knows."""

    caller: Caller
    names: tuple[str, ...]
    version: int


class ToolListing:
    """Lists the tools to clients, and notifies them of changes."""

    def __init__(
        self,
        toolbox: Toolbox,
        described: Mapping[str, types.Tool],
        last: types.Tool,
        version: Callable[[], int],
    ) -> None:
        """`last` is listed after all others. `version` changes with the tools that are added elsewhere."""
        self._version = version
        self._toolbox = toolbox
        self._described = described
        self._last = last
        self._told: WeakKeyDictionary[Connection, _Told] = WeakKeyDictionary()

    def list(self, context: ServerRequestContext[Any, Any], caller: Caller) -> types.ListToolsResult:
        names = self._names(caller)
        self._told[_connection_of(context)] = _Told(caller, names, self._version())
        return types.ListToolsResult(tools=[*(self._described[name] for name in names), self._last])

    async def announce(self, changed: Bell, on_change: Callable[[], None]) -> None:
        """Notify each client for which other tools are listed than it knows, after each ring; until cancelled.

        `on_change` is called after each ring too, for clients that subscribe.
        """
        while True:
            rung = changed.next()
            on_change()
            for connection, told in list(self._told.items()):
                if self._names(told.caller) != told.names or told.version != self._version():
                    await _notify(connection)
            await rung.wait()

    def _names(self, caller: Caller) -> tuple[str, ...]:
        return tuple(name for name in self._described if self._toolbox[name].is_listed(caller))


def _connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """The connection of a request, which lives as long as the client. The SDK has no public name for it."""
    return vars(context.session)["_connection"]


async def _notify(connection: Connection) -> None:
    """Ask a client to list the tools again. A client that is gone, or does not read, misses it."""
    with anyio.move_on_after(NOTIFY_SECONDS), suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await connection.send_tool_list_changed()
