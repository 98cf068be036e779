"""The MCP endpoints, for doors on the unix socket and for clients on `/mcp`, built when the first client connects.

The MCP SDK takes 15 MB and a third of the daemon's start. Therefore this module imports it, and the modules that use it,
only then and in a thread. Its packages import its client, a server framework and `cryptography` too, which take 12 MB and
which nothing here uses: these are left out. Does not know MCP itself.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from starlette.types import Receive, Scope, Send

from handrail.clients.open_work import ClientProcess
from handrail.gate.gate import Gate
from handrail.lazy_dataclass import dataclass
from handrail.lazy_packages import LazyPackages
from handrail.server.access import Access, Callers
from handrail.server.client_hooks import Hooks
from handrail.server.mcp._lines import Lines
from handrail.server.memory import tune_gc
from handrail.store.bell import Bell
from handrail.store.records import Records

TYPE_CHECKING = False

if TYPE_CHECKING:
    from handrail.server.mcp.door_connection import DoorServer
    from handrail.server.mcp.mcp_server import McpServers
    from handrail.server.mcp.streamable_http import StreamableHttp
    from handrail.upstream.servers import Servers as UpstreamServers

SDK = LazyPackages({"mcp", "mcp.server"}, importers="handrail.server.mcp")
SDK_MODULES = tuple(
    f"handrail.server.mcp.{name}" for name in ("door_connection", "mcp_server", "streamable_http")
)
"""The modules that use the SDK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorPeer:
    """A door, by its hello."""

    key: str
    workspace: str | None
    credential: str
    """Call credential of a hosted agent, or empty."""
    process: ClientProcess | None = None
    """The client, which started the door; None if that is not known."""


@dataclass(frozen=True, slots=True)
class _Servers:
    mcp: "McpServers"
    doors: "DoorServer"
    http: "StreamableHttp"


class McpEndpoints:
    """Serves MCP over every transport."""

    def __init__(
        self,
        gate: Gate,
        hooks: Hooks,
        access: Access,
        callers: Callers,
        wait_seconds: float,
        tools_changed: Bell,
        upstream: "UpstreamServers | None" = None,
        records: Records | None = None,
    ) -> None:
        """`tools_changed` rings when other tools than before may be listed. `upstream` are other MCP servers.
        Without `records` there are no tasks."""
        self._upstream, self._records = upstream, records
        self._gate = gate
        self._hooks = hooks
        self._access = access
        self._callers = callers
        self._wait_seconds = wait_seconds
        self._tools_changed = tools_changed
        self._servers: _Servers | None = None
        self._building = anyio.Lock()
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve within the block."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            group.cancel_scope.cancel()

    async def serve_door(self, lines: Lines, peer: DoorPeer) -> None:
        """Serve one door until it disconnects."""
        await (await self._get_servers()).doors.serve(lines, peer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, as an ASGI application."""
        await (await self._get_servers()).http(scope, receive, send)

    async def leave(self) -> None:
        """Flush the last responses, and notify doors of the shutdown."""
        if self._servers is not None:
            await self._servers.doors.leave()

    async def _get_servers(self) -> _Servers:
        if self._servers is not None:
            return self._servers
        async with self._building:
            if self._servers is None:
                assert self._group is not None, "MCP is served outside of run()"
                servers = await anyio.to_thread.run_sync(self._build)
                await self._group.start(servers.http.run)
                if servers.mcp.tasks is not None:
                    await self._group.start(servers.mcp.tasks.run)
                self._group.start_soon(servers.mcp.announce_tools, self._tools_changed)
                if self._upstream is not None:
                    self._group.start_soon(servers.mcp.announce_tools, self._upstream.changed)
                self._servers = servers
        return self._servers

    def _build(self) -> _Servers:
        SDK.import_modules(*SDK_MODULES)
        from handrail.server.mcp.door_connection import DoorServer  # noqa: PLC0415
        from handrail.server.mcp.mcp_server import McpServers  # noqa: PLC0415
        from handrail.server.mcp.streamable_http import StreamableHttp  # noqa: PLC0415

        mcp = McpServers(self._gate, self._hooks, self._wait_seconds, self._upstream, self._records)
        servers = _Servers(
            mcp, DoorServer(mcp, self._access, self._callers), StreamableHttp(mcp, self._callers)
        )
        tune_gc()
        return servers
