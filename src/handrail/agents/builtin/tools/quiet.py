"""How a sub-agent is heard: its words at the call that it works for, its calls as calls.

Owns what of it reaches the conversation above. It does not know what a sub-agent is.
"""

from collections.abc import Sequence
from decimal import Decimal

from handrail.agents.builtin.thinking.activity import Told
from handrail.agents.builtin.thinking.voice import Answer, Voice
from handrail.agents.builtin.tools.tool import Entry, Json, Result, Shown

_AT_ONCE = 200  # characters that are told at once: each telling is all of its last words
_SHOWN = 4_000  # characters of its last words: a call shows what goes on, not a conversation


class Quiet:
    """A voice within a call of another's."""

    def __init__(self, voice: Voice, call: str) -> None:
        self._voice, self._call = voice, call
        self._said = ""
        self._untold = 0

    def text(self, words: str) -> None:
        self._say(words, at_once=_AT_ONCE)

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
        """An answer is whole. Its context is not the conversation's; its price is told with the next answer there."""
        if self._untold:
            self._tell()

    def activity(self, told: Told) -> None:
        self._voice.activity(told)

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        return await self._voice.ask(id, shown, input)

    def _say(self, words: str, at_once: int = 0) -> None:
        self._said = (self._said + words)[-_SHOWN:]
        self._untold += len(words)
        if self._untold >= at_once or self._said == words:
            self._tell()

    def _tell(self) -> None:
        self._untold = 0
        self._voice.call_heard(self._call, self._said)
