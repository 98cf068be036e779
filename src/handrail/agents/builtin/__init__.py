"""Our own agent: a program that speaks the Agent Client Protocol on stdio, like any other.

It knows nothing of the daemon: its tools come from MCP servers, its model over HTTP. Of Handrail it shares the
configuration and the places, no more.
"""
