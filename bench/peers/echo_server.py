"""The smallest MCP server of the SDK: one tool, which returns its argument."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")


@server.tool()
async def echo(text: str) -> str:
    return text


server.run()
