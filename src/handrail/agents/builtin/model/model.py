"""What a model is to the loop: somebody who is asked, and heard while it answers.

Owns the seam between the loop and the providers. It does not know any of them (ask.py), nor whose key is used (keys.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.tools import ToolDefinition


class Hearing(Protocol):
    """Who listens to an answer as it comes. Nothing here awaits."""

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def thought_ended(self) -> None:
        """The model has done thinking, for now."""
        ...

    def again(self, why: str, seconds: float) -> None:
        """What was heard of this answer so far is void: it will be asked anew after so long."""
        ...


class Model(Protocol):
    """The model of a session, with its settings."""

    @property
    def name(self) -> str:
        """As people choose it: `anthropic:claude-sonnet-4-5`."""
        ...

    @property
    def window(self) -> int | None:
        """Tokens that fit; None where nobody knows."""
        ...

    @property
    def takes_images(self) -> bool: ...

    async def request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], hearing: Hearing
    ) -> ModelResponse:
        """One whole answer, tried again where the provider is overloaded or the line breaks. Raises ModelError.

        Where it is cancelled, its connection is closed before the cancellation goes on.
        """
        ...

    def cost(self, response: ModelResponse) -> Decimal | None:
        """In US dollars, where the price is known."""
        ...


class ModelError(Exception):
    """The model could not be asked, or gave no answer: what, why, and what to do about it."""

    def __init__(self, sentence: str, *, login: bool = False, too_long: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.login = login
        """A key is missing or refused."""
        self.too_long = too_long
        """The conversation does not fit; compacting it may help."""
