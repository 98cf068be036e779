"""Provider adapters: pydantic_ai models with our HTTP client, our key and no retries.

Slow to import; each provider's package is imported with its first model. Retries are in model_client.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.slow_import import import_lazily

if TYPE_CHECKING:
    import httpx2

    from handrail.own_agent.models.api_keys import Access
    from handrail.own_agent.models.model import Choice, Provider


PLACEHOLDER_KEY = "none"
"""Sent as the key to a server that needs none: the adapter requires a value."""
GOOGLE = "https://generativelanguage.googleapis.com"


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """A provider's adapter for one model."""

    model: Model
    settings: ModelSettings
    """Settings of every request."""


def load_provider(provider: Provider) -> None:
    """Import the adapter of a provider, with the provider's own package."""
    import_lazily(f"pydantic_ai.models.{provider}")
    import_lazily(f"pydantic_ai.providers.{provider}")


def build_model(choice: Choice, way: Access, http: httpx2.AsyncClient, level: str | None) -> ProviderModel:
    load_provider(choice.provider)
    match choice.provider:
        case "anthropic":
            model = _anthropic(choice.name, way, http)
            more = _shown_thoughts(model, level)
        case "google":
            model, more = _google(choice.name, way, http), {}
        case "openai" if not way.own:
            model, more = _openai(choice.name, way, http), {"openai_store": False}
        case "openai" | "ollama":
            model, more = _compatible(choice, way, http), _effort(level)
    return ProviderModel(model, cast("ModelSettings", {"cache": True, **_thinking(level), **more}))


def _thinking(level: str | None) -> dict[str, Any]:
    return {} if level is None else {"thinking": False if level == "off" else level}


def _effort(level: str | None) -> dict[str, Any]:
    """The reasoning effort for a custom server, whatever the adapter knows about its model: its operator
    knows better."""
    return {} if level is None else {"openai_reasoning_effort": "none" if level == "off" else level}


def _anthropic(name: str, way: Access, http: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    client = AsyncAnthropic(
        api_key=None if way.bearer else way.key,
        auth_token=way.key if way.bearer else None,
        base_url=way.url,
        http_client=http,
        max_retries=0,
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _shown_thoughts(model: Model, level: str | None) -> dict[str, Any]:
    """Ask for summarised thinking: some Anthropic models hide it otherwise."""
    profile = cast("dict[str, Any]", model.profile)
    thinks = level not in {None, "off"} or (level is None and profile.get("thinking_enabled_by_default"))
    if not thinks or not profile.get("anthropic_supports_adaptive_thinking"):
        return {}
    effort = {} if level is None else {"anthropic_effort": level}
    return {"anthropic_thinking": {"type": "adaptive", "display": "summarized"}, **effort}


def _openai(name: str, way: Access, http: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    client = AsyncOpenAI(api_key=way.key, base_url=way.url, http_client=http, max_retries=0)
    return OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=client))


def _compatible(choice: Choice, way: Access, http: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models.ollama import OllamaModel  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    client = AsyncOpenAI(
        api_key=way.key or PLACEHOLDER_KEY, base_url=way.url, http_client=http, max_retries=0
    )
    if choice.provider == "ollama":
        return OllamaModel(choice.name, provider=OllamaProvider(openai_client=client))
    return OpenAIChatModel(
        choice.name, provider=OpenAICompatibleProvider("openai-compatible", openai_client=client)
    )


def _google(name: str, way: Access, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

    provider = GoogleProvider(api_key=way.key, http_client=http, base_url=way.url or GOOGLE)
    return GoogleModel(name, provider=provider)
