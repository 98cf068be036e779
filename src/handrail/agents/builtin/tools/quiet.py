"""How a sub-agent is heard: its words at the call that it works for, its calls as calls.

Owns what of it reaches the conversation above. It does not know what a sub-agent is.
"""

from collections.abc import Sequence
from decimal import Decimal

from handrail.agents.builtin.activity import Told
from handrail.agents.builtin.tools.tool import Entry, Json, Result, Shown
from handrail.agents.builtin.voice import Answer, Voice

_SHOWN = 4_000  # characters of its last words: a call shows what goes on, not a conversation


class Quiet:
    """A voice within a call of another's."""

    def __init__(self, voice: Voice, call: str) -> None:
        self._voice, self._call = voice, call
        self._said = ""

    def text(self, words: str) -> None:
        self._say(words)

    def thought(self, words: str) -> None:
        """Its thoughts are its own; that it thinks is an activity."""

    def note(self, sentence: str) -> None:
        self._say(f"\n{sentence}\n")

    def call_started(self, id: str, tool: str, shown: Shown, input: Json) -> None:
        self._said = f"{self._said}\n" if self._said else ""
        self._voice.call_started(id, tool, shown, input)

    def call_heard(self, id: str, words: str) -> None:
        self._voice.call_heard(id, words)

    def call_ended(self, id: str, result: Result) -> None:
        self._voice.call_ended(id, result)

    def plan(self, entries: Sequence[Entry]) -> None:
        """The plan that people see is that of the agent they talk to."""

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        """Its context is not the conversation's; its price is told with the next answer there."""

    def activity(self, told: Told) -> None:
        self._voice.activity(told)

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        return await self._voice.ask(id, shown, input)

    def _say(self, words: str) -> None:
        self._said = (self._said + words)[-_SHOWN:]
        self._voice.call_heard(self._call, self._said)
