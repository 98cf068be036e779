"""FastMCP's proxy on stdio, in front of the server whose command line is given."""

import sys

from fastmcp.server import create_proxy  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

program, *arguments = sys.argv[1:]
servers = {"mcpServers": {"echo": {"command": program, "args": arguments}}}
create_proxy(servers).run(show_banner=False)  # pyright: ignore[reportUnknownMemberType]
