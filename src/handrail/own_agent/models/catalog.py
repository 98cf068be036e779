"""The model catalogue: which models can be chosen, which is the default, and a client for each.

Owns the HTTP client that all models share, and closes it. Slow modules are imported off the event loop, on
first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio import to_thread

from handrail.config import OwnAgentSection
from handrail.lazy_dataclass import dataclass
from handrail.own_agent.models.api_keys import NO_KEY, Access, Keys, all_access, provider_access, redact_url
from handrail.own_agent.models.http_stream import RetryPolicy
from handrail.own_agent.models.model import PROVIDERS, Choice, Model, ModelError, Provider, parse_choice
from handrail.own_agent.slow_import import LOADING

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2


LIST_PATIENCE = 2.0
"""Seconds for a server to list its models: a session must not wait for one that is down."""
MOST = 100
"""Models listed per server; more would only make the menu too long to read."""
BUILTIN_MODELS: dict[Provider, tuple[tuple[str, str], ...]] = {
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
class OfferedModel:
    """A model that can be chosen."""

    name: str
    """Full name: `anthropic:claude-sonnet-5-5`."""
    title: str
    description: str = ""


async def list_models(ways: Sequence[Access], http: httpx2.AsyncClient) -> list[OfferedModel]:
    """The models of all these providers, in their order, the best of each first."""
    found: dict[Provider, list[OfferedModel]] = {}

    async def look(way: Access) -> None:
        found[way.provider] = await _server_models(way, http) if way.own else builtin_models(way)

    async with anyio.create_task_group() as group:
        for way in ways:
            group.start_soon(look, way)
    return [each for way in ways for each in found[way.provider]]


def builtin_models(way: Access) -> list[OfferedModel]:
    """The built-in list of a provider's models that suit coding."""
    titled = BUILTIN_MODELS[way.provider]
    return [OfferedModel(name=str(Choice(way.provider, name)), title=title) for name, title in titled]


async def _server_models(way: Access, http: httpx2.AsyncClient) -> list[OfferedModel]:
    return [
        OfferedModel(name=str(Choice(way.provider, name)), title=name, description=redact_url(way.url or ""))
        for name in await _list_model_ids(way, http)
    ]


async def _list_model_ids(way: Access, http: httpx2.AsyncClient) -> list[str]:
    """The model ids that a server lists; empty on failure or timeout."""
    import httpx2  # noqa: PLC0415

    headers = {} if way.key is None else {"Authorization": f"Bearer {way.key}"}
    with anyio.move_on_after(LIST_PATIENCE):
        try:
            answer = await http.get(f"{(way.url or '').rstrip('/')}/models", headers=headers)
            body: Any = answer.json() if answer.is_success else {}
            return [each["id"] for each in body.get("data", ()) if isinstance(each["id"], str)][:MOST]
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, AttributeError):
            return []
    return []


ThoughtLevel = Literal["off", "low", "medium", "high"]
PATIENCE = RetryPolicy()


class Models:
    """The models of all sessions. The creator must call `aclose`."""

    def __init__(
        self,
        keys: Keys,
        settings: OwnAgentSection,
        policy: RetryPolicy = PATIENCE,
        last_provider: Path | None = None,
    ) -> None:
        """`last_provider` is a file with the name of the provider that was used last."""
        self._keys, self._settings, self._policy = keys, settings, policy
        self._last_provider = last_provider
        self._http: httpx2.AsyncClient | None = None
        self._offered: list[OfferedModel] = []
        self._clients: dict[tuple[Choice, ThoughtLevel | None], Model] = {}

    def known(self) -> list[OfferedModel]:
        """The models that are certain without reading the keyring or the network.

        Empty apart from the configured model if the first provider is a custom server, because its list
        decides the default.
        """
        ways = all_access(self._keys)
        certain = [] if ways[0].own else [way for way in ways if not way.own]
        return self._with_configured([each for way in certain for each in builtin_models(way)])

    async def offered(self) -> list[OfferedModel]:
        """All models that can be chosen, including the configured one. Reads the keyring and asks custom
        servers."""
        await self._keys.read()
        self._offered = self._with_configured(await list_models(all_access(self._keys), await self._client()))
        return self._offered

    async def default(self) -> str | None:
        """The configured model, else the first that can be chosen; None without any key or server."""
        await self._keys.read()
        return self._configured or self.preferred(self._offered or await self.offered())

    def preferred(self, among: Sequence[OfferedModel]) -> str | None:
        """The configured model, else the first of these."""
        return self._configured or next((each.name for each in among), None)

    async def model(self, name: str | None, thought_level: ThoughtLevel | None = None) -> Model:
        """A client for this model. Raises ModelError, with `login` if its key is missing."""
        await self._keys.read(again=True)
        if not name:
            raise ModelError(NO_KEY.format(provider="anthropic"), login=True)
        choice = parse_choice(name)
        way = provider_access(choice.provider, self._keys)
        if (choice, thought_level) not in self._clients:
            http = await self._client()
            self._clients[choice, thought_level] = await to_thread.run_sync(
                self._make, choice, way, http, thought_level, abandon_on_cancel=True
            )
        return self._clients[choice, thought_level]

    async def load_provider(self) -> None:
        """Import the package of the preferred model's provider, which takes long, before a prompt needs it.

        Without a preferred model, as before the host has sent its keys: of the provider that was used last.
        """
        with suppress(ModelError):  # the next prompt reports it
            name = self.preferred(self.known())
            await to_thread.run_sync(
                self._load_provider,
                None if name is None else parse_choice(name).provider,
                abandon_on_cancel=True,
            )

    def _load_provider(self, provider: Provider | None) -> None:
        if provider := provider or self._recall_provider():
            with LOADING:
                from handrail.own_agent.models.providers import load_provider  # noqa: PLC0415 - slow import

                load_provider(provider)

    def _recall_provider(self) -> Provider | None:
        try:
            name = self._last_provider.read_text() if self._last_provider else ""
        except (OSError, ValueError):
            return None
        return next((known for known in PROVIDERS if known == name), None)

    def _remember_provider(self, provider: Provider) -> None:
        if self._last_provider is not None and self._recall_provider() != provider:
            with suppress(OSError):  # the next start takes longer, that is all
                self._last_provider.write_text(provider)

    def _make(
        self, choice: Choice, way: Access, http: httpx2.AsyncClient, thought_level: ThoughtLevel | None
    ) -> Model:
        with LOADING:
            from handrail.own_agent.models.model_client import ModelClient  # noqa: PLC0415 - slow import
            from handrail.own_agent.models.providers import build_model  # noqa: PLC0415

            spoken = build_model(choice, way, http, thought_level)
        self._remember_provider(choice.provider)
        return ModelClient(choice, way, spoken, self._settings.context, self._policy, self._keys.hidden)

    async def aclose(self) -> None:
        """Close open connections. A later request opens new ones."""
        self._clients.clear()
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _with_configured(self, found: list[OfferedModel]) -> list[OfferedModel]:
        configured = self._configured
        if not configured or configured in [each.name for each in found]:
            return found
        return [OfferedModel(name=configured, title=configured.partition(":")[2] or configured), *found]

    @property
    def _configured(self) -> str | None:
        """The configured model by its full name, or as written if it names no known model."""
        name = self._keys.get("HANDRAIL_MODEL") or self._settings.model or None
        try:
            return name and str(parse_choice(name))
        except ModelError:
            return name

    async def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            client = await to_thread.run_sync(_open_client, self._policy, abandon_on_cancel=True)
            self._http = self._http or client
        return self._http


def _open_client(policy: RetryPolicy) -> httpx2.AsyncClient:
    from handrail.own_agent.models.http_stream import open_http_client  # noqa: PLC0415

    return open_http_client(policy)
