"""The least MCP server with a tool that hangs until another call tells it to answer."""

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("waiting")
told = anyio.Semaphore(0)


@server.tool()
async def wait() -> str:
    await told.acquire()
    return "told"


@server.tool()
async def release() -> str:
    told.release()
    return "released"


@server.tool()
async def echo(text: str) -> str:
    return text


server.run()
