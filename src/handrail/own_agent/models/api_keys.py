"""The way to each provider: which key, which address.

Owns which variable means what. It does not know how a provider is spoken to.

What our agent was told of models by whoever started it: keys, addresses, and which one.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

import anyio
from anyio import to_thread

from handrail.config import KEYS_OF, PROVIDER_VARIABLES
from handrail.own_agent.models.model import PROVIDERS, ModelError, Provider
from handrail.provider_keys import kept

SECRET = tuple(name for name in PROVIDER_VARIABLES if name.endswith(("_KEY", "_TOKEN")))
SHORTEST = 8
"""Characters of a key below which it is no secret, but a placeholder that may well stand in a sentence."""


class Keys:
    """Values by the names of their variables."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name: value for name, value in given.items() if value}
        self._kept: dict[str, str] | None = None
        self._reading = anyio.Lock()

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> Keys:
        """All that an environment has of them; there, they are gone."""
        return cls({name: environ.pop(name) for name in PROVIDER_VARIABLES if name in environ})

    def give(self, more: Mapping[str, object]) -> None:
        """What whoever hosts us tells on the line, where nobody else can read it; it comes before what was taken."""
        self._given |= {
            name: value for name in PROVIDER_VARIABLES if isinstance(value := more.get(name), str) and value
        }

    async def read(self) -> None:
        """Look into the keyring, once, for what was not given; what lies there goes to no address that was."""
        async with self._reading:
            if self._kept is None:
                unaddressed = [keys for address, keys in KEYS_OF.items() if address not in self._given]
                wanted = [name for keys in unaddressed for name in keys if name not in self._given]
                self._kept = await to_thread.run_sync(kept, *wanted, abandon_on_cancel=True)

    def get(self, *names: str) -> str | None:
        """The first of these that there is. What was given comes before what is kept."""
        for values in (self._given, self._kept or {}):
            for name in names:
                if name in values:
                    return values[name]
        return None

    def hidden(self, text: str) -> str:
        """A text with no key in it, whoever wrote it."""
        values = {**(self._kept or {}), **self._given}
        for name in SECRET:
            if len(value := values.get(name, "")) >= SHORTEST:
                text = text.replace(value, "…")
        return text


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
