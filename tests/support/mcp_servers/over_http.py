"""MCP servers over HTTP on loopback, for tests of the relay: made with the official SDK, and one with bad habits.

`with http_servers() as web:` serves them in a thread; `web.url("new")` is the address of one. Each request is recorded.
"""

import json
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import (
    Completion,
    CompletionArgument,
    CreateMessageResult,
    EmptyResult,
    ListRootsResult,
    SamplingMessage,
    SubscribeRequestParams,
    TextContent,
)
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.support.mcp_servers.authorization import Authorization, Protected
from tests.support.mcp_servers.event_store import MemoryEventStore

Json = dict[str, Any]
NEW = "2026-07-28"


@dataclass
class Seen:
    """One HTTP request."""

    server: str
    method: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def rpc(self) -> str:
        """The method of its message."""
        return json.loads(self.body).get("method", "") if self.body else ""


@dataclass
class Web:
    """The servers, and what they saw."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list[Seen])
    events: list[str] = field(default_factory=list[str])
    """What their tools did, with the time."""
    bearer: str = ""
    """If set, all requests need it."""
    authorization: Authorization = field(default_factory=Authorization)

    def url(self, server: str) -> str:
        return f"http://127.0.0.1:{self.port}/{server}/mcp"

    def log(self, event: str) -> None:
        self.events.append(f"{event} {time.monotonic()}")

    def of(self, server: str, method: str = "") -> list[Seen]:
        return [each for each in self.seen if each.server == server and method in ("", each.method, each.rpc)]


class Name(BaseModel):
    name: str


def build_server(web: Web, name: str) -> MCPServer[Any]:  # noqa: C901 - a function for each tool
    server: MCPServer[Any] = MCPServer("web", log_level="CRITICAL")

    @server.tool()
    async def echo(text: str) -> str:
        """Says it again."""
        return text

    @server.tool()
    async def leaks(ctx: Context[Any, Any]) -> str:
        """Says how it was asked."""
        return json.dumps(dict(ctx.headers or {}))

    @server.tool()
    async def waits() -> str:
        web.log("waits began")
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            web.log("waits cancelled")
            raise
        return "slept"

    @server.tool()
    async def counts(ctx: Context[Any, Any]) -> str:
        for step in (1, 2, 3):
            await ctx.report_progress(step, 3, f"step {step}")
        return "counted"

    @server.tool()
    async def breaks(ctx: Context[Any, Any]) -> str:
        """Closes its stream in the middle; the answer is there when the client comes back."""
        await ctx.close_sse_stream()
        await anyio.sleep(0.2)
        return "resumed"

    def ask_name() -> Elicit[Name]:
        return Elicit("Who?", Name)

    def ask_model() -> Sample:
        said = SamplingMessage(role="user", content=TextContent(type="text", text="Hi"))
        return Sample([said], max_tokens=5)

    def ask_roots() -> ListRoots:
        return ListRoots()

    @server.tool()
    async def asks(who: Annotated[Name, Resolve(ask_name)]) -> str:
        return who.name

    @server.tool()
    async def samples(said: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
        return str(said)

    @server.tool()
    async def roots(found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
        return str(found.roots[0].uri)

    @server.tool()
    async def updates(ctx: Context[Any, Any]) -> str:
        """The resource changes."""
        if ctx.protocol_version == NEW:
            await ctx.notify_resource_updated(f"{name}://one")
        else:
            await ctx.request_context.session.send_resource_updated(f"{name}://one")
        return "updated"

    @server.tool()
    async def grows(ctx: Context[Any, Any], name: str) -> str:
        async def grown() -> str:
            return "grown"

        server.add_tool(grown, name=name)
        if ctx.protocol_version != NEW:
            await ctx.request_context.session.send_tool_list_changed()
        await ctx.notify_tools_changed()
        return "one more"

    @server.resource(f"{name}://one")
    async def one() -> str:
        return "the one"

    @server.completion()
    async def complete(_ref: object, argument: CompletionArgument, _context: object) -> Completion:
        return Completion(values=[f"{argument.value}!"])

    async def subscribe(_context: object, params: SubscribeRequestParams) -> EmptyResult:
        web.log(f"subscribed {params.uri}")
        return EmptyResult()

    if name == "old":  # the SDK's high-level server has none of MCP 2025
        server._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)  # pyright: ignore[reportPrivateUsage]

    @server.prompt()
    async def greet(who: str) -> str:
        return f"Greet {who}"

    return server


@contextmanager
def http_servers() -> Generator[Web]:
    web = Web()
    apps: dict[str, ASGIApp] = {
        "new": _OnlyNew(build_server(web, "new").streamable_http_app()),
        "old": _OnlyOld(
            build_server(web, "old").streamable_http_app(event_store=MemoryEventStore(), retry_interval=100)
        ),
        "json": _OnlyOld(build_server(web, "json").streamable_http_app(json_response=True)),
        "both": build_server(web, "both").streamable_http_app(),
        "private": Protected(build_server(web, "private").streamable_http_app(), web.authorization),
        "bad": Starlette(routes=[Route("/mcp", bad, methods=["GET", "POST", "DELETE"])]),
    }

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                inner: Any = getattr(app, "app", app)
                await stack.enter_async_context(inner.router.lifespan_context(inner))
            yield

    mounts = [Mount(f"/{name}", _Recorded(web, name, app)) for name, app in apps.items()]
    mounts.append(Mount("/", web.authorization.app()))
    config = uvicorn.Config(
        Starlette(routes=mounts, lifespan=lifespan), port=0, log_level="critical", timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    web.port = running.servers[0].sockets[0].getsockname()[1]
    web.authorization.origin = f"http://127.0.0.1:{web.port}"
    web.authorization.resource = web.url("private")
    try:
        yield web
    finally:
        running.should_exit = running.force_exit = True
        thread.join(10)


class _Recorded:
    """Records each request, and wants the bearer."""

    def __init__(self, web: Web, name: str, app: ASGIApp) -> None:
        self._web, self._name, self._app = web, name, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen = Seen(self._name, scope["method"], headers)
        self._web.seen.append(seen)
        if self._web.bearer and headers.get("authorization") != f"Bearer {self._web.bearer}":
            await JSONResponse({"sorry": True}, 401)(scope, receive, send)
            return

        async def recorded() -> Message:
            message = await receive()
            seen.body += message.get("body", b"")
            return message

        await self._app(scope, recorded, send)


class _OnlyNew:
    """A server of MCP 2026-07-28 only: it refuses the handshake."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_new(scope):
            error = {"code": -32022, "message": "too old", "data": {"supported": [NEW]}}
            await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)
            return
        await self.app(scope, receive, send)


class _OnlyOld:
    """A server of MCP 2025 only."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = JSONResponse({"sorry": True}, 400) if _is_new(scope) else self.app
        await app(scope, receive, send)


def _is_new(scope: Scope) -> bool:
    return dict(scope["headers"]).get(b"mcp-protocol-version", b"").startswith(b"2026")


BAD_TOOLS = (
    "elsewhere",
    "nothing",
    "page",
    "fails",
    "endless",
    "huge",
    "cut",
    "odd",
    "floods",
    "hangs",
    "echo",
)


async def bad(request: Request) -> Response:  # noqa: C901, PLR0911, PLR0912 - a case for each habit
    """A server that sends nonsense, by the name of the tool."""
    if request.method != "POST":
        return Response(status_code=405)
    asked: Json = json.loads(await request.body())
    number: object = asked.get("id")
    params: Json = asked.get("params") or {}
    method, tool = str(asked["method"]), str(params.get("name"))
    if number is None:
        return Response(status_code=202)

    def reply(result: Json) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})

    match method, tool:
        case "initialize", _:
            about = {"name": "bad", "version": "1"}
            version = params["protocolVersion"]
            found = reply({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
            found.headers["mcp-session-id"] = "sess\xefon"  # no header that a client can send back
            return found
        case "tools/list", _:
            return reply({"tools": [{"name": each, "inputSchema": {"type": "object"}} for each in BAD_TOOLS]})
        case _, "elsewhere":
            return RedirectResponse("http://localhost:1/other", 307)
        case _, "nothing":
            return Response(status_code=202)
        case _, "page":
            return Response("<html>Please log in</html>", media_type="text/html")
        case _, "fails":
            return Response("oops", 503)
        case _, "endless":
            return StreamingResponse(repeat(b"x" * 65536), media_type="text/event-stream")
        case _, "huge":
            return StreamingResponse(repeat(b" " * 65536), media_type="application/json")
        case _, "cut":
            return StreamingResponse(repeat(b"data: {}\n\n", 3), media_type="text/event-stream")
        case _, "odd":
            return StreamingResponse(
                repeat("id: événement\ndata: {}\n\n".encode(), 1), media_type="text/event-stream"
            )
        case _, "floods":
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "noise"}}
            event = b"data: " + json.dumps(note).encode() + b"\n\n"
            return StreamingResponse(repeat(event * 100), media_type="text/event-stream")
        case _, "hangs":
            await anyio.sleep(60)
            return reply({})
        case _:
            return reply({"content": [{"type": "text", "text": "still here"}]})


async def repeat(piece: bytes, times: int = 100_000) -> AsyncGenerator[bytes]:
    for _ in range(times):
        yield piece
        await anyio.lowlevel.checkpoint()
