"""The MCP server, over the daemon's unix socket and over HTTP."""
