"""Who calls: a credential, or a door, as the caller that the gate and the record know.

Owns that translation. It does not know how a credential was judged (access.py), nor what runs for a thread: it asks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from handrail.server.access import Client
from handrail.store.value import Caller


@dataclass(frozen=True, slots=True)
class Callers:
    """Makes callers of clients."""

    running: Callable[[str], str | None]
    """The operation that runs for a thread now."""

    def holding(self, client: Client, door: Literal["http", "stdio"], told: str) -> Caller:
        """Whoever holds this credential; `told` is what they call themselves.

        An agent that we started for a thread is known by the name we know it under, and calls for the prompt that it
        works on. Everything it does for that thread has one key, whichever way it comes.
        """
        if client.thread is None:
            return Caller(door=door, client=told, key=client.credential, workspace=client.workspace)
        return Caller(
            door=door,
            client=client.name,
            key=client.thread,
            workspace=client.workspace,
            thread=client.thread,
            operation=self.running(client.thread),
        )
