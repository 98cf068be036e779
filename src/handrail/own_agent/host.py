"""What an operation says while it works, to whoever hosts the agent.

Owns the verbs alone. All but `ask` return at once and are heard in the order they were said. How they travel is
speech.py's to know.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, Protocol

from handrail.own_agent.activity import Told
from handrail.own_agent.tools.agent_tool import Entry, Json, Result, Shown

Answer = Literal["allowed", "always", "denied", "cancelled"]
"""`always`: this one, and every later use of this tool in this session, which is not asked about again."""


class Voice(Protocol):
    """One session's way to its host."""

    def text(self, words: str) -> None:
        """A piece of the answer."""
        ...

    def thought(self, words: str) -> None: ...

    def note(self, sentence: str) -> None:
        """Something that the agent itself, not the model, has to say: a line of its own in the answer."""
        ...

    def call_started(self, id: str, tool: str, shown: Shown, input: Json) -> None: ...

    def call_heard(self, id: str, words: str) -> None:
        """What is known of a call while it runs: that it waits for a person, for instance. Replaces what was said."""
        ...

    def call_ended(self, id: str, result: Result) -> None: ...

    def plan(self, entries: Sequence[Entry]) -> None: ...

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        """Tokens in the context now, how many fit, and the price of the whole conversation in US dollars."""
        ...

    def activity(self, told: Told) -> None: ...

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        """May this call of somebody else's tool be made? The host asks a person, or its rules."""
        ...
