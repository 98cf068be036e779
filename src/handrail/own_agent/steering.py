"""Steering: messages that a person sends while a prompt is being processed.

The loop adds them to the conversation before its next model request, and does not end while one waits. It does not know
the host protocol.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

Content = Sequence["UserContent"]
"""The content of one message, as the model reads it."""


@dataclass(slots=True)
class SteeringQueue:
    """The messages that wait for the next model request. Nothing here awaits: a message is taken or refused immediately."""

    is_open: bool = False
    waiting: list[Content] = field(default_factory=list[Content])

    def put(self, content: Content) -> bool:
        """Add a message; False if no prompt is being processed any more."""
        if self.is_open:
            self.waiting.append(content)
        return self.is_open

    def take(self) -> list[Content]:
        """Remove and return the messages, in order of arrival."""
        taken, self.waiting = self.waiting, []
        return taken

    def close(self) -> list[Content]:
        """Refuse further messages; returns those that no model request has carried."""
        self.is_open = False
        return self.take()
