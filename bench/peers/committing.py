"""The least MCP server that keeps a record: an echo, answered after one awaited FULL commit of what it gives back.

The commit runs in a thread: a server that blocks its loop on the disk can serve nobody else meanwhile.
"""

import sys

from anyio import to_thread
from mcp.server.mcpserver import MCPServer

from bench.commit import Commits

server = MCPServer("committing")
commits = Commits(sys.argv[1])


@server.tool()
async def echo(text: str) -> str:
    await to_thread.run_sync(commits.commit, text)
    return text


server.run()
