"""The way to each provider: which key, which address.

Owns which variable means what. It does not know how a provider is spoken to.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from handrail.agents.builtin.model.choice import PROVIDERS, Provider
from handrail.agents.builtin.model.keys import Keys
from handrail.agents.builtin.model.model import ModelError

TITLES = {"anthropic": "Anthropic", "openai": "OpenAI", "google": "Google", "ollama": "Ollama"}
OLLAMA = "http://127.0.0.1:11434/v1"
NO_KEY = (
    "There is no key for a model. Give one in any of these ways: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GOOGLE_API_KEY "
    "(GEMINI_API_KEY) where you run `handrail chat`, `handrail up`, or the editor that starts this agent; set it for this "
    'agent in the configuration ([[agents]] name = "handrail", env = {{ … }}); keep it in the system\'s keyring with '
    "`handrail keys set {provider}`. A model server of your own needs none: set OPENAI_BASE_URL or OLLAMA_BASE_URL to "
    "its address. An address that is set gets only a key that is set beside it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How one provider is reached."""

    provider: Provider
    key: str | None = None
    bearer: bool = False
    """The key is a token of another sort (ANTHROPIC_AUTH_TOKEN)."""
    url: str | None = None
    """Another address than the provider's own."""

    @property
    def title(self) -> str:
        """Whom people are told of."""
        return "The model server" if self.own and self.provider == "openai" else TITLES[self.provider]

    @property
    def own(self) -> bool:
        """A server that speaks like OpenAI but is not: its models are its own, and it may want no key."""
        return self.provider == "ollama" or (
            self.provider == "openai"
            and self.url is not None
            and _parts(self.url).hostname != "api.openai.com"
        )


def shown(url: str) -> str:
    """An address as people may see it: without the name, the password or the key that some stand with."""
    parts = _parts(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _parts(url: str) -> SplitResult:
    """Of anything that somebody set as an address: one that is none leads nowhere, and is said so when it is tried."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def access(provider: Provider, keys: Keys) -> Access:
    """Raises ModelError where there is no way."""
    match provider:
        case "anthropic":
            key, token = keys.get("ANTHROPIC_API_KEY"), keys.get("ANTHROPIC_AUTH_TOKEN")
            found = Access(
                provider=provider,
                key=key or token,
                bearer=key is None,
                url=keys.get("ANTHROPIC_BASE_URL"),
            )
        case "openai":
            found = Access(provider=provider, key=keys.get("OPENAI_API_KEY"), url=keys.get("OPENAI_BASE_URL"))
        case "google":
            key = keys.get("GOOGLE_API_KEY", "GEMINI_API_KEY")
            found = Access(provider=provider, key=key, url=keys.get("GOOGLE_GEMINI_BASE_URL"))
        case "ollama":
            url = keys.get("OLLAMA_BASE_URL") or OLLAMA
            found = Access(provider=provider, key=keys.get("OLLAMA_API_KEY"), url=url)
    if found.key is None and not found.own:
        raise ModelError(NO_KEY.format(provider=provider), login=True)
    return found


def accesses(keys: Keys) -> list[Access]:
    """All ways that there are. Ollama is always among them: it may run here, whoever says so or not."""
    found: list[Access] = []
    for provider in PROVIDERS:
        try:
            found.append(access(provider, keys))
        except ModelError:
            continue
    return found
