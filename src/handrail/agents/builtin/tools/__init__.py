"""What our agent can do: the tools of MCP servers, and the few that are its own."""
