"""The door: a small program that clients launch, which proxies their stdio to the daemon's socket.

It finds or starts the daemon, forwards bytes unchanged, and answers every request even if the daemon dies. Standard
library only, for a fast start.
"""

EXPORTS = {
    "connect": "DaemonNotRunning HELLO_SECONDS HelloRefused Impostor check_lives connect dial dial_path repeat_greeting "
    "say_hello",
    "hook": "",
    "mcp_stdio": "",
    "own_processes": "ANSWER_SECONDS describe_hung_keeper end_process find_daemon find_hung_keeper find_keeper",
    "shell": "",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
