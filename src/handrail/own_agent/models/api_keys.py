"""API keys and base URLs of each provider, from the environment, the host or the system keyring.

A base URL from the environment is only used with a key from there: keys of the keyring never go to it.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from urllib.parse import SplitResult, urlsplit, urlunsplit

import anyio
from anyio import to_thread

from handrail.config import KEYS_FOR_URL, PROVIDER_VARIABLES
from handrail.lazy_dataclass import dataclass
from handrail.own_agent.models.model import PROVIDERS, ModelError, Provider
from handrail.provider_keys import read_keys

SECRET = tuple(name for name in PROVIDER_VARIABLES if name.endswith(("_KEY", "_TOKEN")))
SHORTEST = 8
"""Characters. A shorter value is a placeholder, which may well occur in normal text, and is not redacted."""


class Keys:
    """Values by the names of their environment variables."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name: value for name, value in given.items() if value}
        self._kept: dict[str, str] | None = None
        self._reading = anyio.Lock()

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> Keys:
        """Take the provider variables out of an environment; removes them there."""
        return cls({name: environ.pop(name) for name in PROVIDER_VARIABLES if name in environ})

    def give(self, more: Mapping[str, object]) -> None:
        """Add values that the host sent over ACP, where no other process can read them. They take precedence."""
        self._given |= {
            name: value for name in PROVIDER_VARIABLES if isinstance(value := more.get(name), str) and value
        }

    async def read(self, *, again: bool = False) -> None:
        """Read missing keys from the keyring, once; `again` if it had none, as a person may have added one. Keys of a provider whose base URL is set are not read:
        they must not be sent to that URL."""
        async with self._reading:
            if self._kept is None or (again and not self._kept):
                unaddressed = [keys for address, keys in KEYS_FOR_URL.items() if address not in self._given]
                missing = [name for keys in unaddressed for name in keys if name not in self._given]
                self._kept = await to_thread.run_sync(read_keys, *missing, abandon_on_cancel=True)

    def get(self, *names: str) -> str | None:
        """The first of these variables that has a value. Given values take precedence over the keyring."""
        for values in (self._given, self._kept or {}):
            for name in names:
                if name in values:
                    return values[name]
        return None

    def hidden(self, text: str) -> str:
        """The text with all keys redacted."""
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
    """Key and URL of one provider."""

    provider: Provider
    key: str | None = None
    bearer: bool = False
    """The key is a bearer token (ANTHROPIC_AUTH_TOKEN)."""
    url: str | None = None
    """A base URL other than the provider's."""

    @property
    def title(self) -> str:
        """The name for messages to people."""
        return "The model server" if self.own and self.provider == "openai" else TITLES[self.provider]

    @property
    def own(self) -> bool:
        """Whether this is another server with OpenAI's API: it has its own models and may need no key."""
        return self.provider == "ollama" or (
            self.provider == "openai"
            and self.url is not None
            and _parts(self.url).hostname != "api.openai.com"
        )


def redact_url(url: str) -> str:
    """A URL for messages: without user, password, query and fragment."""
    parts = _parts(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _parts(url: str) -> SplitResult:
    """Split a URL; an invalid one gives an empty result, and fails when it is used."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def provider_access(provider: Provider, keys: Keys) -> Access:
    """Key and URL of a provider. Raises ModelError if there is no key."""
    match provider:
        case "anthropic":
            key, token = keys.get("ANTHROPIC_API_KEY"), keys.get("ANTHROPIC_AUTH_TOKEN")
            result = Access(
                provider=provider,
                key=key or token,
                bearer=key is None,
                url=keys.get("ANTHROPIC_BASE_URL"),
            )
        case "openai":
            result = Access(
                provider=provider, key=keys.get("OPENAI_API_KEY"), url=keys.get("OPENAI_BASE_URL")
            )
        case "google":
            key = keys.get("GOOGLE_API_KEY", "GEMINI_API_KEY")
            result = Access(provider=provider, key=key, url=keys.get("GOOGLE_GEMINI_BASE_URL"))
        case "ollama":
            url = keys.get("OLLAMA_BASE_URL") or OLLAMA
            result = Access(provider=provider, key=keys.get("OLLAMA_API_KEY"), url=url)
    if result.key is None and not result.own:
        raise ModelError(NO_KEY.format(provider=provider), login=True)
    return result


def all_access(keys: Keys) -> list[Access]:
    """All providers that can be used. Ollama is always included, because it may run on this machine."""
    result: list[Access] = []
    for provider in PROVIDERS:
        try:
            result.append(provider_access(provider, keys))
        except ModelError:
            continue
    return result
