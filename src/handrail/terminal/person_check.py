"""Decide whether a socket peer is a person, by its position in the process tree.

Processes that launched a door count as agents, and so do their descendants and everything that Handrail started.
keeper/lineage.py reads the process tree.
"""

import os
import socket

from handrail.keeper import lineage

NO_PERSON = (
    "This runs inside an agent's process tree, or inside something that Handrail started, and neither can decide "
    "for a person. Do it on the page, or in a terminal of your own."
)
OTHER_USER = "This socket belongs to another user."


class DoorLaunchers:
    """The live processes that launched a door."""

    def __init__(self) -> None:
        self._launchers: set[tuple[int, int]] = set()

    def launched_door(self, connection: socket.socket) -> None:
        """Record the parent of this door as an agent."""
        peer = lineage.Peer.of(connection)
        try:
            above = lineage.parent(peer.pid)
            launcher = lineage.identity(above) if above > 1 else None
            self._launchers = {item for item in self._launchers if lineage.identity(item[0]) == item}
            if launcher is not None:
                self._launchers.add(launcher)
        finally:
            peer.close()

    def refusal(self, connection: socket.socket) -> str | None:
        """Why the peer does not count as a person; None when it may be a person."""
        peer = lineage.Peer.of(connection)
        try:
            return None if peer.is_trusted(self._launchers) else NO_PERSON
        finally:
            peer.close()


def is_other_user(connection: socket.socket) -> bool:
    """Whether the peer runs as another user. The directory's mode should already prevent that."""
    peer = lineage.Peer.of(connection)
    try:
        return peer.uid != os.getuid()
    finally:
        peer.close()


def runs_inside_handrail() -> bool:
    """Whether this process descends from a process that Handrail started."""
    return lineage.is_marked(os.getpid())
