"""A message to write into, and what an agent may send about it; for tests of what is made of updates."""

from itertools import count
from typing import Any

from handrail.agents.conversation.recorder import Recorder
from handrail.store.threads.message import Message
from handrail.store.values import Json


class Page:
    """A recorder on a message in memory, and what else it said."""

    def __init__(self, *, begun: bool = True) -> None:
        self._rev = count(1)
        self.states: list[tuple[str, Json]] = []
        self.kept: list[bytes] = []
        self.titles: list[str] = []
        self.recorder = Recorder(
            lambda name, data: self.states.append((name, data)), self.keep, self.titles.append
        )
        self.message = self._blank()
        if begun:
            self.turn()

    def turn(self) -> Message:
        """The next message begins."""
        self.message = Message(
            lambda _: next(self._rev),
            lambda _: None,
            id="m1",
            thread="h1",
            n=1,
            role="assistant",
            agent="ann",
        )
        self.recorder.begin(self.message)
        return self.message

    def _blank(self) -> Message:
        return Message(
            lambda _: next(self._rev),
            lambda _: None,
            id="m1",
            thread="h1",
            n=1,
            role="assistant",
            agent="ann",
        )

    def keep(self, content: bytes) -> str:
        self.kept.append(content)
        return f"sha{len(self.kept)}"

    def hears(self, kind: str, /, **fields: Any) -> None:
        self.recorder.update({"sessionUpdate": kind, **fields})

    def says(self, text: str, kind: str = "agent_message_chunk", **fields: Any) -> None:
        self.hears(kind, content={"type": "text", "text": text}, **fields)

    @property
    def parts(self) -> list[tuple[str, str]]:
        return [(part.kind, part.text) for part in self.message.parts]

    @property
    def calls(self) -> list[Any]:
        return [part.data for part in self.message.parts if part.kind == "call"]
