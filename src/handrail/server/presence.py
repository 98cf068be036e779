"""Who is there to be asked: people that follow what happens, and could answer.

Owns how many there are right now. It does not know sockets, nor what is done when there are none (notify.py).
"""

from collections.abc import Generator
from contextlib import contextmanager

from handrail.server.access import Person


class Presence:
    """How many people follow."""

    def __init__(self) -> None:
        self._here = 0

    def count(self) -> int:
        return self._here

    @contextmanager
    def following(self, person: Person) -> Generator[None]:
        """This one is there; whoever may only watch is nobody to ask."""
        self._here += person.approves
        try:
            yield
        finally:
            self._here -= person.approves
