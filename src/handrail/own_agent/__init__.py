"""Handrail's own agent: an ACP program that works from an API key alone."""

EXPORTS = {
    "__main__": "",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
