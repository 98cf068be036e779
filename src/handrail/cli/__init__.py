"""The command line. It uses the daemon's HTTP API like any other client. The door does not import it."""

EXPORTS = {
    "command_line": "run",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
