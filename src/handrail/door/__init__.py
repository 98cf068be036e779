"""The door: a small program that clients launch, which proxies their stdio to the daemon's socket.

It finds or starts the daemon, forwards bytes unchanged, and answers every request even if the daemon dies. Standard
library only, for a fast start.
"""

EXPORTS = {
    "connect": "DaemonNotRunning HelloRefused connect dial dial_path say_hello",
    "mcp_stdio": "",
    "shell": "",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
