"""The MCP servers behind the gate: started on demand for each client, ended with it, kept apart from each other.

Each client has its own process of each server it uses. A server that crashes, hangs or floods costs the calls that it
serves; it is started again on the next use, after a delay that grows. Tools come from the pins until a server runs.
"""

import logging
import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.config import McpServerSection
from handrail.errors import Unwritable
from handrail.gate.tool import CallReport, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.bell import Bell
from handrail.store.journal import Journal
from handrail.store.mcp_servers import PinnedServer, ServerEnded, ServerStarted
from handrail.store.values import Caller, Json
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals
from handrail.upstream._tool_pins import ToolPins
from handrail.upstream._transports import Transport, Transports, list_secrets
from handrail.upstream.feature_tools import build_feature_tools
from handrail.upstream.forwarded_tool import ForwardedTool, Place
from handrail.upstream.jsonrpc_connection import ConnectionLost, Progress, RpcError
from handrail.upstream.no_client import NoClient
from handrail.upstream.secret_store import SecretStore
from handrail.upstream.server_connection import ClientLink, ServerConnection
from handrail.upstream.server_state import Retry, RunningServer, ServerState, ServerUse, process_of
from handrail.upstream.tool_definition import ToolDefinition, name_definition

TYPE_CHECKING = False

if TYPE_CHECKING:
    from handrail.upstream.oauth_sign_ins import OAuthSignIns

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 400
"""Running servers of all clients: bounds memory and processes."""
NOT_ACCEPTED = (
    "A person has not accepted config.toml yet, so no MCP server is started. `handrail status` tells how."
)
GONE_MAX = 1000
"""Tools in the toolbox that no server lists, or lists any more: a server may list others each time."""
ROUTES_EASY = 256
"""Routes of calls, above which those of ended calls are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How the result, progress and questions of one call reach its client."""

    key: str
    """Names the client: one process of each server per key."""
    link: ClientLink
    meta: Json = field(default_factory=dict[str, Any])
    on_progress: Progress | None = None
    origin: object = None
    """The client's request; only the link knows what it is."""
    answers: Json = field(default_factory=dict[str, Any])
    """What the client answers before it is asked, by the names of the questions."""


class Servers:
    """The configured MCP servers. `run` must be running for any of them to start."""

    def __init__(
        self,
        sections: Sequence[McpServerSection],
        terminals: Terminals,
        environment: Callable[[Sequence[str]], Mapping[str, str]],
        journal: Journal,
        toolbox: dict[str, Tool[Any, Any]],
        place: Place,
        secrets: SecretStore,
        *,
        is_held: Callable[[], bool],
        is_open: Callable[[str], bool],
    ) -> None:
        """`environment` returns a program's environment, with the named variables of the daemon's own added. The tools
        are added to `toolbox`. `is_held`: no person has accepted the configuration. `is_open`: a call has no outcome."""
        self.configured = {each.name: each for each in sections}
        """All entries by name, also those that are not enabled."""
        self._sections = {each.name: each for each in sections if each.enabled}
        self._terminals, self._journal = terminals, journal
        self._transports = Transports(
            terminals, environment, secrets, self._sections, lambda: self._group, self.forgive
        )
        self.secrets = secrets
        self._toolbox, self._place = toolbox, place
        self._is_held, self._is_open = is_held, is_open
        self._pins = ToolPins(journal, ())
        self._running: dict[tuple[str, str], RunningServer] = {}
        self._routes: dict[str, Route] = {}
        self._retries: dict[tuple[str, str], Retry] = {}
        self._group: TaskGroup | None = None
        self.states = {name: ServerState() for name in self._sections}
        self.changed = Bell()
        """Rings when other tools than before are listed."""
        self.on_list_changed: list[Callable[[str, str], None]] = []
        """Called with the name of a server and the method of its notification."""
        self.version = 0
        """Changes with the listed tools."""

    async def run(
        self, pinned: Sequence[PinnedServer], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Host the servers until cancelled; returns when all their process trees have ended."""
        self._toolbox.update({tool.name: tool for tool in build_feature_tools(self)})
        self._pins = ToolPins(self._journal, pinned)
        self._note_tools()
        async with anyio.create_task_group() as group:
            self._group = group
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._group = None

    async def leave(self) -> None:
        """End all servers."""
        self._group = None
        for running in self._running.values():
            running.end("It was ended with Handrail.")
        for running in list(self._running.values()):
            await running.ended.wait()

    def add(self, section: McpServerSection) -> None:
        """Take up an entry that a person added."""
        self.configured[section.name] = section
        if section.enabled:
            self._sections[section.name] = section
            self.states[section.name] = ServerState()
        self._note_tools()

    async def remove(self, name: str) -> None:
        """Forget an entry that a person removed, and end its processes. Its tools stay known."""
        self.configured.pop(name, None)
        if self._sections.pop(name, None) is not None:
            self._note_tools()
            await self.restart(name, f"A person removed the MCP server {name}.")

    @property
    def is_held(self) -> bool:
        """No person has accepted the configuration, so nothing is started."""
        return self._is_held()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._sections)

    @property
    def tools(self) -> list[ToolDefinition]:
        """All tools that clients may see, in an order that does not change."""
        return [tool for name in sorted(self._sections) for tool in self.list_tools_of(name)]

    def list_tools_of(self, name: str) -> list[ToolDefinition]:
        """The tools of a server; a changed one as it was accepted."""
        return self._pins.list(name)

    def list_tools(self, key: str) -> list[ToolDefinition]:
        """The tools of one client: servers offer some only to clients with certain abilities."""
        return [tool for tool in self.tools if self._offers(tool, key)]

    def _offers(self, tool: ToolDefinition, key: str) -> bool:
        """Whether the client's own process has the tool; true while that does not run."""
        connection = self.connection(tool.server, key)
        return connection is None or tool.own_name in connection.tools.tools

    def connection(self, name: str, key: str) -> ServerConnection | None:
        """The client's connection to a server, if that runs."""
        running = self._running.get((name, key))
        return None if running is None else running.connection

    @property
    def unknown(self) -> list[str]:
        """Servers whose tools were never listed."""
        return [name for name in self._sections if not self._pins.is_known(name)]

    @property
    def needed_secrets(self) -> dict[str, list[str]]:
        """The names of the secrets that each server needs."""
        return {name: list_secrets(section) for name, section in self._sections.items()}

    def mask(self, text: str) -> str:
        """The text without the values of secrets."""
        return self.secrets.mask(text)

    def reviews_results(self, server: str) -> bool:
        """Whether a person sees the results of this server before the client gets them."""
        return server in self._sections and self._sections[server].review_results

    @property
    def sign_ins(self) -> "OAuthSignIns":
        """The sign-ins to servers over HTTP."""
        return self._transports.sign_ins

    def forgive(self) -> None:
        """A person changed a secret: start servers that failed on the next use, without delay."""
        self._retries.clear()

    def capabilities(self, name: str) -> Json:
        return self._pins.capabilities(name)

    def bind(self, call: str, route: Route) -> None:
        """Note the client of a call that was just opened."""
        if len(self._routes) >= ROUTES_EASY:
            self._routes = {name: each for name, each in self._routes.items() if self._is_open(name)}
        self._routes[call] = route

    async def request(self, server: str, method: str, params: Json, call: CallReport) -> Json:
        """Send a request of a client to a server. Raises Refusal, RpcError or ConnectionLost."""
        route = self._routes.pop(call.id, None) or _route_from(call.caller)
        async with self.using(server, route.key, route.link) as connection:
            return await connection.request(method, params, route.on_progress, route.origin, route.answers)

    async def forward(self, tool: ToolDefinition, arguments: Json, call: CallReport) -> Json:
        """Send a call to its server, for the client that made it. Raises Refusal, RpcError or ConnectionLost."""
        route = self._routes.pop(call.id, None) or _route_from(call.caller)
        async with self.using(tool.server, route.key, route.link) as connection:
            current = connection.tools.tools.get(tool.own_name)
            if current is None:
                raise Refusal(f"{tool.server} does not offer {tool.own_name} to this client.")
            if current.digest != tool.digest and not self._pins.is_accepted(current):
                raise Refusal(
                    f"{tool.server} describes {tool.own_name} in other words than when this was decided, so nothing was "
                    "done. Ask again: a person will see what changed."
                )
            meta: Json = {"_meta": route.meta} if route.meta else {}
            params: Json = {"name": tool.own_name, "arguments": arguments, **meta}
            return await connection.call_tool(current, params, route.on_progress, route.origin, route.answers)

    @asynccontextmanager
    async def using(self, name: str, key: str, link: ClientLink) -> AsyncGenerator[ServerConnection]:
        """The client's connection to a server, started if needed, and kept for the block. Raises Refusal."""
        running = await self._find(name, key, link)
        running.users += 1
        try:
            await running.started.wait()
            if running.ended_by_discovery:  # this time it is not asked for 2026-07-28
                async with self.using(name, key, link) as connection:
                    yield connection
                return
            if running.connection is None:
                raise Refusal(running.problem)
            yield running.connection
        finally:
            running.users -= 1
            running.end_if_unused()

    def expect(self, name: str) -> bool:
        """Let the rules judge a call of a tool that may not be listed yet. False if no server can offer this name."""
        tool = name_definition(name)
        if tool is not None and tool.server in self._sections and name not in self._toolbox:
            self._add_tools([tool])
        return name in self._toolbox

    async def prepare(self, name: str, key: str, link: ClientLink) -> str:
        """Start a client's server, and list its tools. Returns why that failed, as a sentence; empty if it did not."""
        try:
            async with self.using(name, key, link):
                return ""
        except Refusal as refusal:
            return refusal.sentence

    def close(self, key: str) -> None:
        """A client has left: end its servers, once its calls that go on have ended."""
        self._retries = {at: each for at, each in self._retries.items() if at[1] != key}
        for running in [each for each in self._running.values() if each.key == key]:
            running.leaving = True
            running.end_if_unused()

    async def end(self, key: str) -> None:
        """End the servers of a client, and wait until their process trees have ended."""
        self.close(key)
        for running in [each for each in self._running.values() if each.key == key]:
            await running.ended.wait()

    def connections(self, key: str | None = None, name: str | None = None) -> list[ServerConnection]:
        """The connections that are open: of one client, or to one server."""
        running = [
            each for at, each in self._running.items() if name in (None, at[0]) and key in (None, at[1])
        ]
        return [each.connection for each in running if each.connection is not None]

    async def restart(self, name: str, why: str = "") -> None:
        """End all processes of a server; the next use starts it again, without delay."""
        self._state(name).has_failed = self._state(name).is_legacy = False
        self._retries = {at: each for at, each in self._retries.items() if at[0] != name}
        for running in [each for each in self._running.values() if each.section.name == name]:
            running.end(why or f"A person restarted the MCP server {name}.")
            await running.ended.wait()

    def uses(self, name: str, key: str | None = None) -> list[ServerUse]:
        """The processes of a server, each with the client that it serves; with a key, of that client only."""
        found = [each for at, each in self._running.items() if at[0] == name and key in (None, at[1])]
        return [each.describe_use(self.mask) for each in found]

    async def _find(self, name: str, key: str, link: ClientLink) -> RunningServer:
        while (running := self._running.get((name, key))) is not None:
            if not running.is_stopped and (running.transport is None or running.transport.why is None):
                running.serve(link)
                return running
            await running.ended.wait()
        return self._start(name, key, link)

    def _start(self, name: str, key: str, link: ClientLink) -> RunningServer:
        section = self._sections.get(name)
        if section is None:
            raise Refusal(f"There is no MCP server called {name} in Handrail's configuration any more.")
        if self._is_held():
            raise Refusal(NOT_ACCEPTED)
        if self._group is None:
            raise Refusal("No MCP server can be started: Handrail is just starting, or ending.")
        retry = self._retries.get((name, key), Retry())
        if (left := retry.at - anyio.current_time()) > 0:
            raise Refusal(f"{retry.problem} It is started again on the next use after {math.ceil(left)} s.")
        if len(self._running) >= CONNECTIONS_MAX:
            raise Refusal(
                f"Handrail runs {CONNECTIONS_MAX} MCP servers, which is the most. End some clients."
            )
        running = self._running[name, key] = RunningServer(section, key, link, leaving=link.has_left)
        # In our own group: the first caller may be cancelled while others wait.
        self._group.start_soon(self._host, running)
        return running

    async def _host(self, running: RunningServer) -> None:
        """Run one server from its start to the end of its process tree."""
        name = running.section.name
        try:
            transport = await self._transports.open(running.section, running.link.workspace)
            running.transport = transport
            try:
                await self._serve(running, transport)
            finally:
                transport.close()
        except Exception as problem:  # of this server alone: the others share the task group
            running.fail(problem)
            self._note_failure(running)
        finally:
            del self._running[name, running.key]
            running.problem = running.problem or f"{name} was ended while it started."
            running.started.set()
            running.ended.set()

    async def _serve(self, running: RunningServer, transport: Transport) -> None:
        try:
            async with anyio.create_task_group() as group:
                connection = ServerConnection(
                    running.section.name,
                    transport,
                    running.link,
                    group,
                    sampling=running.section.sampling,
                    on_tools=self._see_tools,
                    on_list_changed=self._note_list,
                )
                group.start_soon(transport.run)
                group.start_soon(connection.run)
                if await self._open(running, connection, transport):
                    running.give_up_if_stopped()
                    await transport.over.wait()
                group.cancel_scope.cancel()
        finally:
            await self._end(running, transport)

    async def _open(self, running: RunningServer, connection: ServerConnection, transport: Transport) -> bool:
        """Shake hands; False if the server does not answer in time, or not as it should."""
        seconds, state = running.section.start_seconds, self._state(connection.name)
        asks_first = not running.link.is_legacy and not state.is_legacy
        try:
            with anyio.fail_after(seconds):
                await connection.open(seconds / 2 if asks_first else 0.0)
        except (TimeoutError, RpcError, ConnectionLost) as problem:
            running.fail_start(problem, self.mask(connection.garbage))
        state.is_legacy = state.is_legacy or connection.refused_discovery
        if running.problem:
            running.ended_by_discovery = connection.refused_discovery and transport.why is not None
            transport.give_up(running.problem)
            return False
        running.since = anyio.current_time()
        self._see_tools(connection)
        self._note_start(running, connection, process_of(transport))
        running.connection = connection
        running.started.set()
        return True

    async def _end(self, running: RunningServer, transport: Transport) -> None:
        name, state = running.section.name, self._state(running.section.name)
        transport.give_up("It was ended with Handrail.")
        await transport.stop()
        why = self.mask(transport.why or "")
        said = tuple(map(self.mask, transport.stderr_lines))
        process = process_of(transport)
        state.said = said or state.said
        is_failure = running.is_young and not running.ended_by_discovery
        if not running.is_stopped and self._group is not None and is_failure:
            running.problem = running.problem or why
            self._note_failure(running)
        with suppress(Unwritable):
            self._journal.append(
                ServerEnded(
                    server=name,
                    client=str(running.link.info.get("name", "")),
                    terminal="" if process is None else process.id,
                    why=why,
                    said=said[-10:],
                )
            )
        if process is not None:
            self._terminals.release(process.id)

    def _state(self, name: str) -> ServerState:
        return self.states.setdefault(name, ServerState())

    def _note_failure(self, running: RunningServer) -> None:
        self._retries.setdefault((running.section.name, running.key), Retry()).add(running.problem)
        state = self._state(running.section.name)
        state.last_problem, state.has_failed, state.is_legacy = running.problem, True, False

    def _note_start(
        self, running: RunningServer, connection: ServerConnection, process: Terminal | None
    ) -> None:
        info, state = connection.info, self._state(connection.name)
        state.has_failed, state.protocol = False, connection.protocol
        state.version = f"{info.get('name', '')} {info.get('version', '')}".strip()[:200]
        with suppress(Unwritable):
            self._journal.append(
                ServerStarted(
                    server=connection.name,
                    client=str(running.link.info.get("name", "")),
                    terminal="" if process is None else process.id,
                    pid=0 if process is None else process.pid,
                    version=state.version,
                    protocol=connection.protocol,
                )
            )

    def _see_tools(self, connection: ServerConnection) -> None:
        """Compare what a server lists with the pins."""
        connection.tools = self._pins.share(connection.tools)
        self._state(connection.name).refused = connection.tools.refused
        others = [each for each in self.connections(name=connection.name) if each is not connection]
        tools = {name: tool for each in (*others, connection) for name, tool in each.tools.tools.items()}
        if self._pins.see(connection.name, tools, connection.capabilities):
            self._note_tools()

    def _note_list(self, server: str, method: str) -> None:
        for notify in self.on_list_changed:
            notify(server, method)

    def _note_tools(self) -> None:
        """Put the tools into the toolbox, and announce them. One that is gone stays: calls of it may be open."""
        self._add_tools(self.tools)
        self.version += 1
        self.changed.ring()

    def _add_tools(self, tools: Sequence[ToolDefinition]) -> None:
        for tool in tools:
            if tool.name not in self._toolbox:
                self._toolbox[tool.name] = ForwardedTool(tool, self, self, self._place)
        listed = {tool.name for tool in self.tools}
        known = [name for name, tool in self._toolbox.items() if isinstance(tool, ForwardedTool)]
        for name in [name for name in known if name not in listed][:-GONE_MAX]:
            del self._toolbox[name]

    # The pins, as the tools see them: they are read at the start of `run`.

    def get(self, server: str, tool: str) -> ToolDefinition | None:
        return self._pins.get(server, tool)

    def accepted(self, server: str, tool: str) -> ToolDefinition | None:
        return self._pins.accepted(server, tool)

    def is_accepted(self, tool: ToolDefinition) -> bool:
        return self._pins.is_accepted(tool)

    def accept(self, tool: ToolDefinition, why: str) -> None:
        """A person allowed a call of a tool after they saw this definition."""
        self._pins.accept(tool, why)
        self._note_tools()


def _route_from(caller: Caller) -> Route:
    return Route(key=caller.key, link=NoClient(caller))
