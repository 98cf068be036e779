"""What a session offers its agent: somebody who takes down what it says, and does what it asks for.

Owns the seam between the wire (peer.py, agent.py) and the conversation (talk.py). It knows neither.
"""

from typing import Protocol

from handrail.store.value import Json


class Desk(Protocol):
    """Our side of one session."""

    def update(self, update: Json) -> None:
        """Take an update down, in the order they came. Never awaits: what awaits is overtaken by the next one."""
        ...

    async def serve(self, method: str, params: Json) -> Json | None:
        """Do what the agent asks for (`fs/*`, `terminal/*`, `session/request_permission`, `elicitation/*`).

        Raises acp's RequestError with what the agent shall be told.
        """
        ...

    def lost(self, why: str) -> None:
        """The agent's program is gone."""
        ...
