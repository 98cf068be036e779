"""The smallest MCP server with a durable record: an echo, answered after one commit of its text.

The commit runs in a thread, because a server that blocks its loop on the disk cannot serve other calls meanwhile.
"""

import sys

from anyio import to_thread
from mcp.server.mcpserver import MCPServer

from bench.peers.commit import Commits

server = MCPServer("commit")
commits = Commits(sys.argv[1])


@server.tool()
async def echo(text: str) -> str:
    await to_thread.run_sync(commits.commit, text)
    return text


server.run()
