"""The model interface of the agent loop, and parsing of model names (`provider:name`).

model_client.py implements it; api_keys.py decides which key is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.tools import ToolDefinition


class StreamListener(Protocol):
    """Receives a response while it streams. No method waits."""

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def thought_ended(self) -> None:
        """A stretch of thinking has ended."""
        ...

    def again(self, why: str, seconds: float) -> None:
        """The text of this response so far is void: the request is retried after `seconds`."""
        ...


class Model(Protocol):
    """One model with its settings."""

    @property
    def name(self) -> str:
        """Full name: `anthropic:claude-sonnet-4-5`."""
        ...

    @property
    def window(self) -> int | None:
        """Context size in tokens; None if unknown."""
        ...

    @property
    def takes_images(self) -> bool: ...

    async def request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], listener: StreamListener
    ) -> ModelResponse:
        """Return one complete response; retries if the provider is overloaded or the connection breaks.

        If cancelled, it closes its connection before the cancellation propagates. Raises ModelError.
        """
        ...

    def cost(self, response: ModelResponse) -> Decimal | None:
        """Cost in US dollars; None if the price is unknown."""
        ...


class ModelError(Exception):
    """A request to a model failed: what failed, why, and what to do about it."""

    def __init__(self, sentence: str, *, login: bool = False, too_long: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.login = login
        """The key is missing or was rejected."""
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
"""Name prefixes that identify the provider of a name without one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A model of a provider."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


def parse_choice(text: str) -> Choice:
    """Parse a model name. Raises ModelError if the provider cannot be determined."""
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
