"""The smallest MCP server of the SDK over HTTP: one tool, which returns its argument. Its argument is the port."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool()
async def echo(text: str) -> str:
    return text


server.run(transport="streamable-http", port=int(sys.argv[1]))
