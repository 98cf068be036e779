-- The accepted tools of each MCP server behind the gate.
CREATE TABLE mcp_servers (
    name TEXT PRIMARY KEY,
    tools TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    seq INTEGER NOT NULL
) STRICT;
