"""Other MCP servers behind the gate: their processes, their tools as tools of the gate, and the relay of messages."""

EXPORTS = {
    "feature_tools": "GET_PROMPT READ_RESOURCE",
    "features": "Features LISTS",
    "jsonrpc_connection": "INVALID_REQUEST METHOD_NOT_FOUND ConnectionLost RpcError",
    "oauth_sign_ins": "SIGN_IN_SECONDS OAuthError",
    "secret_store": "NAME BadSecret SecretStore",
    "server_connection": "RELATED_TASK",
    "server_state": "ServerState ServerUse",
    "server_trial": "ServerTrial try_server",
    "servers": "Route Servers",
    "tool_definition": "SEPARATOR ToolDefinition diff_definitions",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
