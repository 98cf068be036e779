"""The Agent Host Protocol: VS Code shows Handrail's threads, approvals and terminals in its own chat.

It listens on a separate unix socket, and on a loopback port if one is set, outside of the guard of the HTTP server.
"""
