"""The smallest MCP server with a tool that waits until another call releases it."""

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("wait")
released = anyio.Semaphore(0)


@server.tool()
async def wait() -> str:
    await released.acquire()
    return "done"


@server.tool()
async def release() -> str:
    released.release()
    return "released"


@server.tool()
async def echo(text: str) -> str:
    return text


server.run()
