"""Who is a person: judged by where in the process tree somebody stands.

Owns which processes launched a door, and the sentence for those that are no person. How descent is seen is the
keeper's (keeper/lineage.py); what a person may do is not known here.
"""

import os
import socket

from handrail.keeper import lineage

NO_PERSON = (
    "This runs inside an agent's process tree, or inside something that Handrail started, and neither can decide "
    "for a person. Do it on the page, or in a terminal of your own."
)
STRANGER = "This socket belongs to another user."


class Lineage:
    """Everybody who launched a door, while they live."""

    def __init__(self) -> None:
        self._launchers: set[tuple[int, int]] = set()

    def launched_door(self, connection: socket.socket) -> None:
        """Whoever stands above this door is an agent."""
        peer = lineage.Peer.of(connection)
        try:
            above = lineage.parent(peer.pid)
            found = lineage.identity(above) if above > 1 else None
            self._launchers = {item for item in self._launchers if lineage.identity(item[0]) == item}
            if found is not None:
                self._launchers.add(found)
        finally:
            peer.close()

    def refusal(self, connection: socket.socket) -> str | None:
        """Why whoever holds the other end is not taken for a person; None when it may be one."""
        peer = lineage.Peer.of(connection)
        try:
            return None if peer.is_trusted(self._launchers) else NO_PERSON
        finally:
            peer.close()


def is_stranger(connection: socket.socket) -> bool:
    """Another user holds the other end; the directory's mode should not have let them in."""
    peer = lineage.Peer.of(connection)
    try:
        return peer.uid != os.getuid()
    finally:
        peer.close()


def started_inside() -> bool:
    """Whether this very process was started from inside something Handrail had started."""
    return lineage.is_marked(os.getpid())
