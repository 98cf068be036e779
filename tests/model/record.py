"""What is kept of each request and each connection, with times."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

Json = dict[str, Any]


@dataclass(eq=False)
class Connection:
    """One client's, from its beginning to its end."""

    opened: float = field(default_factory=monotonic)
    closed: float | None = None


@dataclass(eq=False)
class Asked:
    """One request for an answer."""

    dialect: str
    body: Json
    headers: dict[str, str]
    """By their names in small letters."""
    connection: Connection
    aside: bool = False
    at: float = field(default_factory=monotonic)
    said: int = 0
    """Pieces of the answer that were sent."""
    ended: Literal["", "whole", "left", "cut", "refused"] = ""
    """Whole; its listener has left; cut off on purpose; with a status that is no success."""
    ended_at: float | None = None

    def end(self, how: Literal["whole", "left", "cut", "refused"]) -> None:
        self.ended, self.ended_at = how, monotonic()
