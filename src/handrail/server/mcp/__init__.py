"""The MCP server: over the local socket and over HTTP."""
