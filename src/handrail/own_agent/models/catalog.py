"""The models of a session: what can be chosen, what is meant unless somebody chooses, and each of them ready to be asked.

Owns the one HTTP client that all of them share, and closes it. What takes long to load is loaded off the loop, on the
first need of it.

What can be chosen: the models of every provider that there is a way to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio import to_thread

from handrail.config import OwnAgentSection
from handrail.own_agent.models.api_keys import NO_KEY, Access, Keys, access, accesses, shown
from handrail.own_agent.models.http_stream import Patience
from handrail.own_agent.models.model import Choice, Model, ModelError, Provider, chosen

if TYPE_CHECKING:
    import httpx2


LIST_PATIENCE = 2.0
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
    with anyio.move_on_after(LIST_PATIENCE):
        try:
            answer = await http.get(f"{(way.url or '').rstrip('/')}/models", headers=headers)
            told: Any = answer.json() if answer.is_success else {}
            return [each["id"] for each in told.get("data", ()) if isinstance(each["id"], str)][:MOST]
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, AttributeError):
            return []
    return []


ThoughtLevel = Literal["off", "low", "medium", "high"]
PATIENCE = Patience()
LOADING = Lock()
"""Two threads that load the same packages at once get in each other's way; one may have been given up by now."""


class Models:
    """To be closed by whoever made it."""

    def __init__(self, keys: Keys, settings: OwnAgentSection, patience: Patience = PATIENCE) -> None:
        self._keys, self._settings, self._patience = keys, settings, patience
        self._http: httpx2.AsyncClient | None = None
        self._seen: list[Offered] = []
        self._made: dict[tuple[Choice, ThoughtLevel | None], Model] = {}

    def known(self) -> list[Offered]:
        """What can be chosen for certain, without a look into the keyring and without asking anybody. Where a server of
        one's own comes first, and with it the default, nothing is certain before it was asked."""
        ways = accesses(self._keys)
        certain = [] if ways[0].own else [way for way in ways if not way.own]
        return self._with_wanted([each for way in certain for each in short(way)])

    async def offered(self) -> list[Offered]:
        """All that can be chosen now, the one that was set for this agent among them."""
        await self._keys.read()
        self._seen = self._with_wanted(await offered(accesses(self._keys), await self._client()))
        return self._seen

    async def default(self) -> str | None:
        """The one that was set, else the first that can be chosen; None without any key or server."""
        await self._keys.read()
        return self._wanted or self.preferred(self._seen or await self.offered())

    def preferred(self, among: Sequence[Offered]) -> str | None:
        """The one that was set, else the first of these."""
        return self._wanted or next((each.name for each in among), None)

    async def model(self, name: str | None, thought_level: ThoughtLevel | None = None) -> Model:
        """Ready to be asked. Raises ModelError: with `login` where there is no key for it, or none at all."""
        await self._keys.read()
        if not name:
            raise ModelError(NO_KEY.format(provider="anthropic"), login=True)
        choice = chosen(name)
        way = access(choice.provider, self._keys)
        if (choice, thought_level) not in self._made:
            http = await self._client()
            self._made[choice, thought_level] = await to_thread.run_sync(
                self._make, choice, way, http, thought_level, abandon_on_cancel=True
            )
        return self._made[choice, thought_level]

    def _make(
        self, choice: Choice, way: Access, http: httpx2.AsyncClient, thought_level: ThoughtLevel | None
    ) -> Model:
        with LOADING:
            from handrail.own_agent.models.model_client import Asking  # noqa: PLC0415 - seconds of importing
            from handrail.own_agent.models.providers import speaking  # noqa: PLC0415

            spoken = speaking(choice, way, http, thought_level)
        return Asking(choice, way, spoken, self._settings.context, self._patience, self._keys.hidden)

    async def aclose(self) -> None:
        """Close what connections are open; what is asked afterwards opens new ones."""
        self._made.clear()
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _with_wanted(self, found: list[Offered]) -> list[Offered]:
        wanted = self._wanted
        if not wanted or wanted in [each.name for each in found]:
            return found
        return [Offered(name=wanted, title=wanted.partition(":")[2] or wanted), *found]

    @property
    def _wanted(self) -> str | None:
        """By its full name, where it makes sense at all."""
        told = self._keys.get("HANDRAIL_MODEL") or self._settings.model or None
        try:
            return told and str(chosen(told))
        except ModelError:
            return told

    async def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            made = await to_thread.run_sync(_opened, self._patience, abandon_on_cancel=True)
            self._http = self._http or made
        return self._http


def _opened(patience: Patience) -> httpx2.AsyncClient:
    from handrail.own_agent.models.http_stream import opened  # noqa: PLC0415

    return opened(patience)
