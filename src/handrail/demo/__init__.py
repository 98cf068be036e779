"""`handrail demo`: a scripted agent that shows every part of Handrail without a real agent or a key.

It is an ordinary MCP client behind an ordinary door, with no special access.
"""

EXPORTS = {
    "story": "run_story",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
