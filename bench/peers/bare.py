"""The least MCP server of the SDK: one tool, which gives back what it is given."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
async def echo(text: str) -> str:
    return text


server.run()
