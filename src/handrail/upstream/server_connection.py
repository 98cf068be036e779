"""A connection to an MCP server on behalf of one client: the handshake, the tools, and messages in both directions.

Speaks both generations to the server: the handshake of MCP 2025, and 2026-07-28, where a question of the server is a
result that asks for the call again. A server that has both is used in the generation of its client. Apart from that, the
client behind it is a `ClientLink`, which hides its own generation.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue

from handrail import __version__
from handrail.store.values import Json
from handrail.terminal.jsonrpc_messages import encode_message
from handrail.upstream._server_tasks import STATUS, ServerTasks, can_take_tasks
from handrail.upstream.jsonrpc_connection import (
    METHOD_NOT_FOUND,
    ConnectionLost,
    JsonRpcConnection,
    Line,
    Progress,
    RpcError,
)
from handrail.upstream.tool_definition import DefinitionSet, ToolDefinition, read_definitions

log = logging.getLogger(__name__)

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
UNSUPPORTED_VERSION = -32022
PAGES_MAX = 100
"""Pages of one list: a server could answer with a next page for ever."""
LIST_MAX = 10_000
LIST_BYTES = 8 << 20
"""Entries of one list, and their size as JSON: bounds memory. What comes after them is left out."""
ROUNDS_MAX = 20
"""Times that a server of 2026-07-28 may ask for the same call again."""
LIST_SECONDS = 30.0
"""Bounds one list of a server that hangs."""
STREAMS_MAX = 100
"""Resources of a server of 2026-07-28 that one client subscribes to."""
ACKNOWLEDGE_SECONDS = 5.0
RELISTEN_FIRST, RELISTEN_MAX = 1.0, 60.0
"""Delays before a stream of notifications that ended is opened again."""
SAMPLING_REFUSED = "Handrail lets no MCP server use the client's model. `sampling = true` in its `[[servers]]` entry allows it."
_QUESTIONS = {
    "elicitation/create": "elicitation",
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
}
"""What a server may ask, and the ability of the client that it needs. Only these abilities are passed on."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""Metadata of MCP 2025-11-25 that names the task to which a message belongs."""
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class ClientLink(Protocol):
    """The client on whose behalf a server is used."""

    @property
    def info(self) -> Json:
        """Its name and version, as it reports them."""
        ...

    @property
    def capabilities(self) -> Json: ...
    @property
    def workspace(self) -> str | None: ...
    @property
    def log_level(self) -> str:
        """The level of log messages that it wants; empty if it has not said."""
        ...

    @property
    def is_legacy(self) -> bool:
        """Whether it speaks MCP 2025."""
        ...

    @property
    def has_left(self) -> bool:
        """Whether nobody can be asked any more. A server that is started for it ends with its last request."""
        ...

    async def request(self, server: str, method: str, params: Json, origins: Sequence[object]) -> Json:
        """Ask the client. Raises RpcError. `origins` are the client's requests that the server may ask for."""
        ...

    async def request_all(
        self, server: str, questions: Mapping[str, tuple[str, Json]], origins: Sequence[object]
    ) -> Json:
        """Ask what one result of a server asks, by name: methods and parameters. Raises RpcError."""
        ...

    async def notify(self, method: str, params: Json) -> None:
        """Tell the client; dropped if it does not read."""
        ...


class ServerConnection:
    """The connection of one client to one server."""

    def __init__(
        self,
        name: str,
        line: Line,
        link: ClientLink,
        group: TaskGroup,
        *,
        sampling: bool,
        on_tools: Callable[["ServerConnection"], None],
        on_list_changed: Callable[[str, str], None],
    ) -> None:
        """`on_tools` is called when the tools have been listed again, `on_list_changed` when another list changes."""
        self._on_list_changed = on_list_changed
        self.name = name
        self._link, self._sampling, self._on_tools = link, sampling, on_tools
        self._group = group
        self._line = line
        self._rpc = JsonRpcConnection(name, line, self, group)
        self._tasks = ServerTasks(self._rpc, group)
        self.capabilities: Json = {}
        self.info: Json = {}
        self.protocol = ""
        self.refused_discovery = False
        """The server was asked for 2026-07-28 first, and answered with an error, ended, or never answered that."""
        self.tools = DefinitionSet(tools={}, refused=())
        self.lists: dict[str, list[JsonValue]] = {}
        """Entries by the method that lists them, until the server says that they have changed."""
        self._listing = anyio.Lock()
        self._must_list = False
        """A refresh waits, and will find all that changed until then."""
        self._streams: dict[str, anyio.CancelScope] = {}
        """Streams of a server of 2026-07-28 that tell of a resource, by its URI."""
        self._unacknowledged: list[anyio.Event] = []

    def serve(self, link: ClientLink) -> None:
        """Ask this client from now on: one that was idle for long comes back with a new link."""
        self._link = link

    @property
    def garbage(self) -> str:
        """What it sent instead of messages, as a sentence; empty if it sent nothing else."""
        found = self._rpc.last_garbage
        return f"It sent a line that is no MCP message: {found!r}." if found else ""

    async def run(self) -> None:
        """Receive messages until the connection is over."""
        await self._rpc.run()

    async def open(self, discovery_seconds: float = 0.0) -> None:
        """Shake hands, and list the tools. Raises RpcError or ConnectionLost.

        The server has so many seconds to say that it speaks 2026-07-28, before it is asked for the handshake of MCP 2025.
        """
        if not discovery_seconds or not await self._try_discovery(discovery_seconds):
            late = self._rpc.garbage
            try:
                await self._initialize()
            except RpcError:
                await self._discover()
            else:  # a server that was only slow has answered the first question by now
                ignored = bool(discovery_seconds) and self._rpc.garbage == late
                self.refused_discovery = self.refused_discovery or ignored
        if self._link.log_level and self.has("logging") and self.protocol != MODERN:
            await self._rpc.request("logging/setLevel", {"level": self._link.log_level})
        if self.protocol == MODERN and (wanted := self._wanted_changes):
            self._group.start_soon(self._listen, anyio.CancelScope(), wanted)
        if self.has("tools"):
            await self._list_tools()

    @property
    def _wanted_changes(self) -> Json:
        """The lists whose changes a server of 2026-07-28 can tell of."""
        found: Json = {}
        for name in ("tools", "prompts", "resources"):
            capability = self.capabilities.get(name)
            if isinstance(capability, dict) and capability.get("listChanged") is True:
                found[f"{name}ListChanged"] = True
        return found

    def has(self, capability: str) -> bool:
        return isinstance(self.capabilities.get(capability), dict)

    async def request(
        self,
        method: str,
        params: Json,
        on_progress: Progress | None = None,
        origin: object = None,
        answers: Json | None = None,
    ) -> Json:
        """Send a request of the client, and its answers to the server's questions. Raises RpcError or ConnectionLost.

        `answers` are those that the client gives before it is asked. Only a server of 2026-07-28 knows what they mean.
        """
        if self.protocol == MODERN and method in ("resources/subscribe", "resources/unsubscribe"):
            return await self._subscribe(str(params.get("uri")), is_wanted=method == "resources/subscribe")
        given: Json = {"inputResponses": answers} if answers and self.protocol == MODERN else {}
        for number in range(ROUNDS_MAX):
            sent = self._envelope({**params, **given})
            try:
                with self._rpc.progress_token(on_progress) as token:
                    result = await self._rpc.request(method, sent, token, origin)
            except ConnectionLost as lost:
                lost.is_sent = lost.is_sent or number > 0
                raise
            if result.get("resultType") != "input_required":
                return result
            given = await self._answer_questions(result, [] if origin is None else [origin])
        raise RpcError(-32603, f"{self.name} asked for the same call again more than {ROUNDS_MAX} times.")

    async def call_tool(
        self, tool: ToolDefinition, params: Json, on_progress: Progress | None, origin: object, answers: Json
    ) -> Json:
        """Call a tool, as a task if its server takes it only so. Raises RpcError or ConnectionLost."""
        if self.protocol != MODERN and tool.is_task_only and can_take_tasks(self.capabilities):
            result = await self._tasks.call(params, on_progress and _without_task(on_progress), origin)
            return _without_meta(result, RELATED_TASK)
        return await self.request("tools/call", params, on_progress, origin, answers)

    def notify(self, method: str, params: Json) -> None:
        """Pass a notification of the client on. A server of 2026-07-28 takes none."""
        if self.protocol != MODERN:
            self._rpc.notify(method, params)

    async def list_all(self, method: str, field: str) -> list[JsonValue]:
        """All pages of a list. Raises RpcError or ConnectionLost."""
        found: list[JsonValue] = []
        cursor: JsonValue = None
        room = LIST_BYTES
        for _ in range(PAGES_MAX):
            page = await self.request(method, {} if cursor is None else {"cursor": cursor})
            entries, cursor = page.get(field), page.get("nextCursor")
            for entry in entries if isinstance(entries, list) else []:
                room -= len(encode_message(entry))
                if room < 0 or len(found) >= LIST_MAX:
                    log.warning("%s lists more than is taken by %s", self.name, method)
                    return found
                found.append(entry)
            if not isinstance(cursor, str) or not cursor:
                break
        return found

    async def answer(self, method: str, params: Json) -> Json:
        """Answer a request of the server with the client's answer."""
        self._check_question(method, params)
        asked = _without_meta(params, RELATED_TASK)
        return await self._link.request(self.name, method, asked, self._rpc.origins)

    def _check_question(self, method: str, params: Json) -> None:
        """Raises RpcError if the client must not or cannot be asked this."""
        if method not in _QUESTIONS:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        if method == "sampling/createMessage" and not self._sampling:
            raise RpcError(-1, SAMPLING_REFUSED)
        if not self._can_answer(method, params):
            raise RpcError(METHOD_NOT_FOUND, f"The client did not declare that it answers {method}.")

    def _can_answer(self, method: str, params: Json) -> bool:
        """Whether the client declared this. Elicitation with a link is an ability of its own."""
        ability = self._client_capabilities.get(_QUESTIONS[method])
        needs_link = method == "elicitation/create" and params.get("mode") == "url"
        return isinstance(ability, dict) and (not needs_link or "url" in ability)

    async def _subscribe(self, uri: str, *, is_wanted: bool) -> Json:
        """Open or close the stream for a resource, as a server of 2026-07-28 has it."""
        known = self._streams.pop(uri, None)
        if known is not None:
            known.cancel()
        if is_wanted and len(self._streams) >= STREAMS_MAX:
            raise RpcError(
                -32603, f"{STREAMS_MAX} resources of {self.name} are subscribed to, which is the most."
            )
        if is_wanted:
            scope, acknowledged = anyio.CancelScope(), anyio.Event()
            self._streams[uri] = scope
            self._unacknowledged.append(acknowledged)
            wanted: Json = {"resourceSubscriptions": [uri]}
            self._group.start_soon(self._listen, scope, wanted)
            with anyio.move_on_after(ACKNOWLEDGE_SECONDS):
                await acknowledged.wait()
        return {}

    async def _listen(self, scope: anyio.CancelScope, wanted: Json) -> None:
        """Keep a stream of notifications open, until the connection ends or the scope is cancelled."""
        delay = RELISTEN_FIRST
        with scope:
            while True:
                began = anyio.current_time()
                try:
                    await self._rpc.request("subscriptions/listen", self._envelope({"notifications": wanted}))
                except RpcError as problem:
                    log.info("%s has no stream of changes: %s", self.name, problem)
                    return
                except ConnectionLost:
                    if self._line.why is not None:
                        return
                delay = (
                    RELISTEN_FIRST
                    if anyio.current_time() - began > RELISTEN_MAX
                    else min(2 * delay, RELISTEN_MAX)
                )
                await anyio.sleep(delay)
                if "toolsListChanged" in wanted:
                    self._list_again()

    def _list_again(self) -> None:
        if not self._must_list:
            self._must_list = True
            self._group.start_soon(self._refresh_tools)

    async def hear(self, method: str, params: Json) -> None:
        if method == "notifications/subscriptions/acknowledged":
            for acknowledged in self._unacknowledged:
                acknowledged.set()
            self._unacknowledged.clear()
            return
        if method == STATUS:  # the client does not know the task
            await self._tasks.hear(params)
            return
        params = _without_meta(params, _SUBSCRIPTION)
        if method == "notifications/tools/list_changed":
            self._list_again()
            return
        if method.endswith("/list_changed"):
            kind = method.split("/")[1]
            self.lists = {name: kept for name, kept in self.lists.items() if not name.startswith(kind)}
            self._on_list_changed(self.name, method)
        await self._link.notify(method, params)

    async def _initialize(self) -> None:
        params: Json = {
            "protocolVersion": LEGACY,
            "capabilities": self._client_capabilities,
            "clientInfo": self._link.info or {"name": "handrail", "version": __version__},
        }
        result = await self._rpc.request("initialize", params, can_cancel=False)
        self.protocol = str(result.get("protocolVersion", ""))
        self._take(result, result.get("serverInfo"))
        self._rpc.notify("notifications/initialized", {})

    async def _try_discovery(self, seconds: float) -> bool:
        """Whether the server says in time that it speaks 2026-07-28."""
        try:
            with anyio.fail_after(seconds):
                await self._discover()
        except (RpcError, ConnectionLost, TimeoutError) as problem:
            self.protocol = ""
            self.refused_discovery = isinstance(problem, RpcError) or self._line.why is not None
            return False
        return True

    async def _discover(self) -> None:
        """The opening of 2026-07-28, which has no handshake. Raises RpcError if the server does not speak it."""
        self.protocol = MODERN
        result = await self._rpc.request("server/discover", self._envelope({}), can_cancel=False)
        versions = result.get("supportedVersions")
        if not isinstance(versions, list) or MODERN not in versions:
            raise RpcError(UNSUPPORTED_VERSION, f"{self.name} speaks no version of MCP that Handrail knows.")
        meta = result.get("_meta")
        info = meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None
        self._take(result, info)

    def _take(self, result: Json, info: JsonValue) -> None:
        capabilities = result.get("capabilities")
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.info = info if isinstance(info, dict) else {}

    @property
    def _client_capabilities(self) -> Json:
        has = self._link.capabilities
        return {
            name: has[name]
            for name in _QUESTIONS.values()
            if name in has and (name != "sampling" or self._sampling)
        }

    def _envelope(self, params: Json) -> Json:
        """The parameters of a request, for 2026-07-28 with what the handshake said before."""
        if self.protocol != MODERN:
            return params
        meta = params.get("_meta")
        prefix = "io.modelcontextprotocol"
        envelope: Json = {
            **(meta if isinstance(meta, dict) else {}),
            f"{prefix}/protocolVersion": MODERN,
            f"{prefix}/clientInfo": self._link.info or {"name": "handrail", "version": __version__},
            f"{prefix}/clientCapabilities": self._client_capabilities,
        }
        if self._link.log_level:
            envelope[f"{prefix}/logLevel"] = self._link.log_level
        return {**params, "_meta": envelope}

    async def _answer_questions(self, result: Json, origins: Sequence[object]) -> Json:
        """Ask the client what a server of 2026-07-28 asks, and return what the repeated call has to carry."""
        asked = result.get("inputRequests")
        questions: dict[str, tuple[str, Json]] = {}
        for key, question in (asked if isinstance(asked, dict) else {}).items():
            fields = question if isinstance(question, dict) else {}
            params = fields.get("params")
            method, asked_params = str(fields.get("method", "")), params if isinstance(params, dict) else {}
            self._check_question(method, asked_params)
            questions[key] = (method, asked_params)
        answers = await self._link.request_all(self.name, questions, origins)
        state = result.get("requestState")
        return {"inputResponses": answers, **({} if state is None else {"requestState": state})}

    async def _refresh_tools(self) -> None:
        try:
            await self._list_tools()
        except Exception as problem:
            log.warning("the tools of %s could not be listed again: %s", self.name, problem)

    async def _list_tools(self) -> None:
        async with self._listing:
            self._must_list = False
            with anyio.fail_after(LIST_SECONDS):
                listed = await self.list_all("tools/list", "tools")
            self.tools = read_definitions(self.name, listed)
        self._on_tools(self)


def _without_task(on_progress: Progress) -> Progress:
    async def pass_on(progress: Json) -> None:
        await on_progress(_without_meta(progress, RELATED_TASK))

    return pass_on


def _without_meta(params: Json, left: str) -> Json:
    """The fields without the name of our stream or of the server's task, which mean nothing to the client."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or left not in meta:
        return params
    rest: Json = {name: value for name, value in meta.items() if name != left}
    own: Json = {name: value for name, value in params.items() if name != "_meta"}
    return {**own, "_meta": rest} if rest else own
