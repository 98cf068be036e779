"""The door: a small program that clients launch, which proxies their stdio to the daemon's socket.

It finds or starts the daemon, forwards bytes unchanged, and answers every request even if the daemon dies. Standard
library only, for a fast start.
"""
