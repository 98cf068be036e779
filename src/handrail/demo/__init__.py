"""A scripted agent, to see every part of Handrail at work without an agent or a key.

Owns what it does and what it tells the person to look at. It is an ordinary MCP client behind an ordinary door: it
has no way in that an agent does not have.
"""
