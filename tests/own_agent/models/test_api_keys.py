"""Which key and which address leads to a provider."""

import pytest

from handrail.own_agent.models.api_keys import OLLAMA, Access, Keys, all_access, provider_access, redact_url
from handrail.own_agent.models.model import ModelError


def test_a_key_opens_its_provider() -> None:
    keys = Keys({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"})
    assert provider_access("anthropic", keys) == Access(provider="anthropic", key="a")
    assert provider_access("openai", keys) == Access(provider="openai", key="o")
    assert provider_access("google", keys) == Access(provider="google", key="g")
    assert [way.provider for way in all_access(keys)] == ["anthropic", "openai", "google", "ollama"]


def test_a_token_is_told_from_a_key_and_comes_second() -> None:
    assert provider_access("anthropic", Keys({"ANTHROPIC_AUTH_TOKEN": "t"})).bearer
    both = provider_access("anthropic", Keys({"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "a"}))
    assert (both.key, both.bearer) == ("a", False)


def test_a_server_of_ones_own_needs_no_key() -> None:
    own = provider_access("openai", Keys({"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}))
    assert (own.own, own.key, own.title) == (True, None, "The model server")
    official = Keys({"OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_API_KEY": "o"})
    assert not provider_access("openai", official).own
    assert provider_access("ollama", Keys({})).url == OLLAMA


def test_without_any_every_way_to_give_one_is_named() -> None:
    for provider in ("anthropic", "openai", "google"):
        with pytest.raises(ModelError) as caught:
            provider_access(provider, Keys({}))
        assert caught.value.login
        for way in (
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GOOGLE_API_KEY",
            "GEMINI_API_KEY",
            "handrail chat",
            "handrail up",
            'name = "handrail", env = { … }',
            f"handrail keys set {provider}",
            "OPENAI_BASE_URL",
            "OLLAMA_BASE_URL",
        ):
            assert way in caught.value.sentence


def test_an_address_is_shown_without_what_opens_it() -> None:
    assert redact_url("https://me:secret@models.test:8/v1/?key=secret#secret") == "https://models.test:8/v1/"


def test_an_address_that_is_none_harms_nothing_until_it_is_used() -> None:
    broken = provider_access("openai", Keys({"OPENAI_BASE_URL": "http://[::1"}))
    assert (broken.own, redact_url("http://[::1")) == (True, "")
