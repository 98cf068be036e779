"""The daemon: composition root. Builds every part in order and owns the root task group."""

EXPORTS = {
    "daemon": "",
    "start": "",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
