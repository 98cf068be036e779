"""The process at the other end of a connection: whether it may decide for a person.

Only an editor that a person has paired may. `server.editor_pairings` knows these; over TCP no one is recognised.
"""

import socket
from contextlib import AbstractContextManager
from typing import Protocol

OVER_TCP = "A connection over TCP may watch and prompt. Decide on Handrail's page."


class Decision(Protocol):
    """Whether a peer may decide now, and why not."""

    @property
    def decides(self) -> bool: ...

    @property
    def why(self) -> str: ...


class Peer(Protocol):
    """A connected process."""

    @property
    def standing(self) -> Decision:
        """Checked again each time: a person may have paired or refused the editor meanwhile."""
        ...


class Pairings(Protocol):
    """The editors that a person has paired."""

    def connect_agent_host(
        self, connection: socket.socket, workspace: str
    ) -> AbstractContextManager[Peer]: ...


class Watcher:
    """A peer that never decides."""

    decides = False
    why = OVER_TCP

    @property
    def standing(self) -> "Watcher":
        return self
