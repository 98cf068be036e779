"""Keys are taken out of the environment, looked for in the keyring, and never said."""

import os
import subprocess
import sys

import pytest
from tests.support.fake_keyring import KeyringState, rings

from handrail.config import PROVIDER_VARIABLES
from handrail.own_agent.models.api_keys import Keys

pytestmark = pytest.mark.anyio
__all__ = ["rings"]


def test_what_is_taken_is_gone_from_the_environment_and_from_what_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in PROVIDER_VARIABLES:
        monkeypatch.setenv(name, f"value of {name}")
    keys = Keys.take(os.environ)
    assert [keys.get(name) for name in PROVIDER_VARIABLES] == [
        f"value of {name}" for name in PROVIDER_VARIABLES
    ]
    program = "import os; print(sorted(os.environ))"
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=30
    )
    assert not [name for name in PROVIDER_VARIABLES if name in told.stdout]


def test_an_empty_variable_says_nothing() -> None:
    assert Keys.take({"OPENAI_API_KEY": ""}).get("OPENAI_API_KEY") is None


async def test_what_was_not_given_is_looked_for_in_the_keyring(rings: KeyringState) -> None:
    rings.keep("ANTHROPIC_API_KEY", "kept")
    rings.keep("OPENAI_API_KEY", "also kept")
    keys = Keys({"OPENAI_API_KEY": "given"})
    await keys.read()
    assert keys.get("ANTHROPIC_API_KEY") == "kept"
    assert keys.get("OPENAI_API_KEY") == "given"
    assert keys.get("GOOGLE_API_KEY", "GEMINI_API_KEY") is None


async def test_what_the_keyring_has_goes_to_no_address_that_was_given(rings: KeyringState) -> None:
    """A folder's own settings may have put that address into the shell."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        rings.keep(name, "kept")
    keys = Keys({"OPENAI_BASE_URL": "http://elsewhere", "GOOGLE_GEMINI_BASE_URL": "http://elsewhere"})
    await keys.read()
    assert keys.get("OPENAI_API_KEY") is None
    assert keys.get("GOOGLE_API_KEY", "GEMINI_API_KEY") is None
    assert keys.get("ANTHROPIC_API_KEY") == "kept"


async def test_the_keyring_is_asked_once_and_for_keys_alone(rings: KeyringState) -> None:
    keys = Keys({})
    await keys.read()
    await keys.read()
    assert len(rings.asked) == len(set(rings.asked))
    assert all(name.endswith(("_KEY", "_TOKEN")) for name in rings.asked)


async def test_without_a_keyring_there_is_just_none() -> None:
    keys = Keys({})
    await keys.read()
    assert keys.get("ANTHROPIC_API_KEY") is None


async def test_no_text_keeps_a_key(rings: KeyringState) -> None:
    rings.keep("GOOGLE_API_KEY", "kept-secret-2")
    keys = Keys({"OPENAI_API_KEY": "given-secret-1", "OLLAMA_API_KEY": "none"})
    await keys.read()
    assert keys.hidden("given-secret-1, kept-secret-2, none") == "…, …, none"
