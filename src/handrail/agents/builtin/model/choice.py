"""Choosing a model: `provider:name`, as people write it.

Owns the names of the providers. Whether there is a key for one is access.py's to know, and whether it has such a model
only itself knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from handrail.agents.builtin.model.model import ModelError

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
