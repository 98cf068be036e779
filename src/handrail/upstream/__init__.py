"""Other MCP servers behind the gate: their processes, their tools as tools of the gate, and the relay of messages."""

EXPORTS = {
    "forwarded_tool": "ForwardedTool Place",
    "jsonrpc_connection": "ConnectionLost METHOD_NOT_FOUND Progress RpcError",
    "server_connection": "ClientLink ServerConnection",
    "servers": "Route ServerState Servers",
    "tool_definition": "SEPARATOR ToolDefinition",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
