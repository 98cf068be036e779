"""The Agent Host Protocol: VS Code shows Handrail's threads, approvals and terminals in its own chat.

It listens on a unix socket of its own, and on a loopback port if one is set, outside of the guard of the HTTP server.
"""
