"""The smallest MCP server that records a write durably: a commit before it, and a commit after it.

Both run in a thread, because a server that blocks its loop on the disk cannot serve other calls meanwhile.
"""

import sys
from pathlib import Path

from anyio import to_thread
from mcp.server.mcpserver import MCPServer

from bench.peers.commit import Commits

server = MCPServer("commit")
commits = Commits(sys.argv[1])
file = Path(sys.argv[2])


@server.tool()
async def write(text: str) -> str:
    await to_thread.run_sync(commits.commit, text)
    await to_thread.run_sync(file.write_text, text)
    await to_thread.run_sync(commits.commit, text)
    return text


server.run()
