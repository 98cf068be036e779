"""A third-party MCP server with tools that succeed, fail, block, ignore a cancel or exit.

`python sample.py LOG` serves stdio. `python sample.py LOG --port N --bearer B [--old]` serves HTTP; with --old it speaks
the older protocol generation only. It writes one line to LOG for each event.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import AudioContent, CallToolResult, ImageContent, ResourceLink, TextContent
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
server = MCPServer("somebody", instructions="Use echo for everything.", log_level="CRITICAL")


class Log:
    path = Path()

    @classmethod
    def write(cls, line: str) -> None:
        with cls.path.open("a") as file:
            file.write(f"{line}\n")


@server.tool()
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool()
async def raises() -> str:
    raise ValueError("the wheel came off")


@server.tool()
async def refuses() -> str:
    raise MCPError(-32000, "the wheel came off")


@server.tool()
async def waits(name: str) -> str:
    """Until it is cancelled."""
    Log.write(f"{name} began")
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        Log.write(f"{name} cancelled")
        raise
    return "slept"


@server.tool()
async def ignores(name: str, seconds: float) -> str:
    """Works on, whatever its client wants."""
    Log.write(f"{name} began")
    with anyio.CancelScope(shield=True):
        await anyio.sleep(seconds)
    Log.write(f"{name} ended")
    return "slept"


@server.tool()
async def hangs(name: str) -> str:
    """Not even its loop goes on: nothing more is read or written."""
    Log.write(f"{name} began")
    time.sleep(60)  # noqa: ASYNC251 - that is what it is for
    return "slept"


@server.tool()
async def progresses(ctx: Context[Any, Any]) -> str:
    await ctx.report_progress(1, 3, "one of three")
    await ctx.report_progress(2, 3)
    return "three"


@server.tool()
async def grows(ctx: Context[Any, Any]) -> str:
    """One more tool from now on."""

    async def grown() -> str:
        return "grown"

    server.add_tool(grown)
    await ctx.request_context.session.send_tool_list_changed()
    return "one more"


@server.tool()
async def asks(ctx: Context[Any, Any]) -> str:
    """As our own server beats while a person is waited for."""
    await ctx.report_progress(10, message="waiting for a person for 10 s")
    return "allowed"


@server.tool()
async def huge(lines: int) -> str:
    return "".join(f"line {number}\n" for number in range(lines))


@server.tool()
async def shows(count: int) -> CallToolResult:
    """Of every sort."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="Here it is."),
            *[ImageContent(type="image", data=PIXEL, mime_type="image/png") for _ in range(count)],
            ImageContent(type="image", data="???", mime_type="image/png"),
            ImageContent(type="image", data=PIXEL, mime_type="image/x-odd"),
            AudioContent(type="audio", data=PIXEL, mime_type="audio/wav"),
            ResourceLink(type="resource_link", name="the page", uri="https://example.test/page"),
        ]
    )


@server.tool()
async def says(text: str, picture: bool) -> CallToolResult:
    said = TextContent(type="text", text=text)
    shown = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return CallToolResult(content=[said, shown] if picture else [said])


@server.tool()
async def structured() -> CallToolResult:
    return CallToolResult(content=[], structured_content={"answer": 42, "long": "x" * 10_000})


@server.tool()
async def denied() -> CallToolResult:
    """In our own server's words."""
    said = {"status": "denied", "reason": "no"}
    return CallToolResult(
        content=[TextContent(type="text", text="Denied.")], structured_content=said, is_error=True
    )


@server.tool()
async def dies() -> str:
    Log.write("dies")
    os._exit(3)


@server.tool()
async def environment() -> str:
    return json.dumps({**os.environ, "cwd": str(Path.cwd()), "pid": os.getpid()})


class Guard:
    """Requires the bearer. With `old`, it refuses the newer protocol generation."""

    def __init__(self, app: ASGIApp, bearer: str, *, old: bool) -> None:
        self._app, self._bearer, self._old = app, f"Bearer {bearer}".encode(), old

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            new = headers.get(b"mcp-protocol-version", b"").startswith(b"2026")
            if headers.get(b"authorization") != self._bearer or (self._old and new):
                code = 400 if self._old and new else 401
                await JSONResponse({"sorry": True}, code)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--bearer", default="")
    parser.add_argument("--old", action="store_true")
    asked = parser.parse_args()
    Log.path = asked.log
    Log.write(f"up {os.getpid()}")
    if asked.port is None:
        server.run()
    else:
        app = Guard(server.streamable_http_app(), asked.bearer, old=asked.old)
        uvicorn.run(app, host="127.0.0.1", port=asked.port, log_level="critical")
    Log.write("down")


if __name__ == "__main__":
    main()
