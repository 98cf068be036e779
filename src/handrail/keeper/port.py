"""The ports on which a daemon serves people, held open for as long as the keeper lives.

A page that was left open comes back to its port by itself and shows its bearer there. Were the port free while no
daemon runs, whoever took it would be given that bearer; so it is ours, and a page waits until the next daemon answers.
When the keeper ends, what it remembers of sign-ins ends with it, and the bearer opens nothing any more.

Owns the sockets. Does not know what is served on them.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = "127.0.0.1"
BACKLOG = 256
"""Connections that may wait for a daemon; more are refused."""


class Ports:
    """Every port that a daemon was given, by its number."""

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def open(self, wished: Sequence[int]) -> int:
        """The first of these that is held already or free, else one that is held, else any: a descriptor of it."""
        for port in (*wished, *self._held, 0):
            listener = self._held.get(port) or _listen(port)
            if listener is not None:
                self._held[listener.getsockname()[1]] = listener
                return os.dup(listener.fileno())
        raise OSError(errno.EADDRINUSE, "no port is free on loopback")

    def close(self) -> None:
        for listener in self._held.values():
            listener.close()


def _listen(port: int) -> socket.socket | None:
    """The port on loopback, or None when it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OverflowError) or error.errno in (errno.EADDRINUSE, errno.EACCES):
            return None
        raise
    return listener
