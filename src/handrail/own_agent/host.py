"""The interface an operation uses to report to its host.

All methods except `ask` return without waiting and are delivered in order. updates.py implements it for ACP.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, Protocol

from handrail.own_agent.activity import ActivityUpdate
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result

Answer = Literal["allowed", "always", "denied", "cancelled"]
"""`always` allows this call and all later calls of the tool in this session without asking."""


class Host(Protocol):
    """The reporting channel of one session."""

    def text(self, words: str) -> None:
        """Send a piece of the model's answer."""
        ...

    def thought(self, words: str) -> None: ...

    def note(self, sentence: str) -> None:
        """Send a note of the agent itself, not of the model, as a separate line of the answer."""
        ...

    def call_started(self, id: str, tool: str, shown: CallDisplay, input: Json) -> None: ...

    def call_heard(self, id: str, words: str) -> None:
        """Set the progress text of a running call, such as that it waits for a person. Replaces the previous
        text."""
        ...

    def call_ended(self, id: str, result: Result) -> None: ...

    def plan(self, entries: Sequence[PlanEntry]) -> None: ...

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        """Report the tokens in the context, the context size, and the cost of the whole conversation in US
        dollars."""
        ...

    def activity(self, told: ActivityUpdate) -> None: ...

    async def ask(self, id: str, shown: CallDisplay, input: Json) -> Answer:
        """Ask the host for permission to call a tool of another MCP server. A person or the host's rules
        answer."""
        ...
