"""The servers of the daemon: MCP, the HTTP API, the live sockets and the page."""

EXPORTS = {
    "access": "Access Callers Client",
    "ahp.ahp_server": "AhpServer listen",
    "ahp.ahp_host": "AhpHost",
    "api.daemon_models": "Restart",
    "api.models": "now_ms",
    "app": "HOST LazyApi build_device_app build_guarded_app",
    "client_hooks": "Hooks KnownClients MARK",
    "client_sessions": "ClientNotice ClientSessions",
    "connection_limit": "ConnectionBudget",
    "context": "Presence ServerContext",
    "demo_terminal": "DemoTerminal",
    "device_listener": "DeviceListener",
    "editor_pairings": "EditorPairings",
    "editor_windows": "EditorWindows",
    "first_thread": "create_first_thread",
    "health": "LoopMonitor",
    "mcp.local_socket": "LocalSocketServer find_workspace",
    "mcp.mcp_endpoints": "McpEndpoints",
    "settings_file": "SettingsFile",
    "sign_ins": "SignIn SignIns",
    "web_push": "PushSender",
    "web_server": "WebServer",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
