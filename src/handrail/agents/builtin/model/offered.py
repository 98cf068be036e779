"""What can be chosen: the models of every provider that there is a way to.

A provider of its own has a short list here of what is good at this work; any other of its models can be named all the
same. Servers that speak like OpenAI are asked for theirs. It does not know how a model is asked for an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from handrail.agents.builtin.model.access import Access, shown
from handrail.agents.builtin.model.choice import Choice, Provider

if TYPE_CHECKING:
    import httpx2

PATIENCE = 2.0
"""Seconds for a server to list its models: a conversation must not wait for one that is gone."""
MOST = 100
"""Of one server's; more would only fill a menu that nobody reads."""
SHORT: dict[Provider, tuple[tuple[str, str], ...]] = {
    "anthropic": (
        ("claude-opus-5-5", "Claude Opus 5.5"),
        ("claude-sonnet-5-5", "Claude Sonnet 5.5"),
        ("claude-haiku-5-5", "Claude Haiku 5.5"),
        ("claude-fable-5-1", "Claude Fable 5.1"),
    ),
    "openai": (
        ("gpt-6.1-sol", "GPT-6.1 Sol"),
        ("gpt-6.1-terra", "GPT-6.1 Terra"),
        ("gpt-6-luna", "GPT-6 Luna"),
        ("gpt-6-astra", "GPT-6 Astra"),
    ),
    "google": (
        ("gemini-4-argon", "Gemini 4 Argon"),
        ("gemini-3.8-flash", "Gemini 3.8 Flash"),
        ("gemini-3.5-flash-lite", "Gemini 3.5 Flash Lite"),
    ),
    "ollama": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One that can be chosen."""

    name: str
    """As it is chosen: `anthropic:claude-sonnet-5-5`."""
    title: str
    description: str = ""


async def offered(ways: Sequence[Access], http: httpx2.AsyncClient) -> list[Offered]:
    """In the order of the providers, the best of each first."""
    found: dict[Provider, list[Offered]] = {}

    async def look(way: Access) -> None:
        found[way.provider] = await _theirs(way, http) if way.own else short(way)

    async with anyio.create_task_group() as group:
        for way in ways:
            group.start_soon(look, way)
    return [each for way in ways for each in found[way.provider]]


def short(way: Access) -> list[Offered]:
    """What its provider is known to have that is good at this work."""
    titled = SHORT[way.provider]
    return [Offered(name=str(Choice(way.provider, name)), title=title) for name, title in titled]


async def _theirs(way: Access, http: httpx2.AsyncClient) -> list[Offered]:
    return [
        Offered(name=str(Choice(way.provider, name)), title=name, description=shown(way.url or ""))
        for name in await _listed(way, http)
    ]


async def _listed(way: Access, http: httpx2.AsyncClient) -> list[str]:
    """Nothing where it cannot be had in time."""
    import httpx2  # noqa: PLC0415

    headers = {} if way.key is None else {"Authorization": f"Bearer {way.key}"}
    with anyio.move_on_after(PATIENCE):
        try:
            answer = await http.get(f"{(way.url or '').rstrip('/')}/models", headers=headers)
            told: Any = answer.json() if answer.is_success else {}
            return [each["id"] for each in told.get("data", ()) if isinstance(each["id"], str)][:MOST]
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, AttributeError):
            return []
    return []
