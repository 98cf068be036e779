"""What a client launches: a small program between the client's stdio and the daemon's socket.

Owns the way to the daemon (found, or started) and the promise that a client is always answered. Does not know
tools, rules or the journal: it passes bytes. Standard library only, so that it is up before a client looks.
"""
