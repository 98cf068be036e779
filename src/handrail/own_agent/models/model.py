"""What a model is to the loop: somebody who is asked, and heard while it answers.

Owns the seam between the loop and the providers. It does not know any of them (ask.py), nor whose key is used (keys.py).

Choosing a model: `provider:name`, as people write it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

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


Provider = Literal["anthropic", "openai", "google", "ollama"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
FAMILIES: dict[str, Provider] = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "google",
}
"""By which a name without a provider is known."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One provider's model."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


def chosen(text: str) -> Choice:
    """Raises ModelError where nobody could know what is meant."""
    provider, colon, name = text.strip().partition(":")
    for known in PROVIDERS:
        if colon and name and provider == known:
            return Choice(known, name)
    for family, known in FAMILIES.items():
        if text.strip().startswith(family):
            return Choice(known, text.strip())
    raise ModelError(
        f"“{text[:100]}” names no model. Say it as provider:name, for instance anthropic:claude-sonnet-5-5; "
        f"the providers are {', '.join(PROVIDERS)}."
    )
