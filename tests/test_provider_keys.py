"""Keys in the system's keyring, by a keyring of our own."""

import pytest
from tests.support.fake_keyring import KeyringState, rings

from handrail import provider_keys
from handrail.provider_keys import NoKeyring

__all__ = ["rings"]


def test_what_is_kept_is_found_until_it_is_forgotten(rings: KeyringState) -> None:
    provider_keys.store_key("OPENAI_API_KEY", "secret")
    assert provider_keys.read_keys("OPENAI_API_KEY", "GOOGLE_API_KEY") == {"OPENAI_API_KEY": "secret"}
    assert provider_keys.delete_key("OPENAI_API_KEY")
    assert not provider_keys.delete_key("OPENAI_API_KEY")
    assert provider_keys.read_keys("OPENAI_API_KEY") == {}


def test_a_locked_keyring_holds_nobody_up(rings: KeyringState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_keys, "PATIENCE", 0.05)
    monkeypatch.setattr(provider_keys, "PROMPTED", 0.05)
    rings.locked.clear()
    assert provider_keys.read_keys("OPENAI_API_KEY") == {}
    with pytest.raises(NoKeyring, match="may be locked"):
        provider_keys.store_key("OPENAI_API_KEY", "secret")


def test_a_refusal_is_told_without_the_key(rings: KeyringState) -> None:
    rings.refuses = True
    with pytest.raises(NoKeyring, match="refused: PasswordSetError") as caught:
        provider_keys.store_key("OPENAI_API_KEY", "secret")
    assert "secret" not in str(caught.value)


def test_where_there_is_no_keyring_nothing_is_found_and_keeping_says_so() -> None:
    import keyring  # noqa: PLC0415
    from keyring.backends.fail import Keyring  # noqa: PLC0415

    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    try:
        assert provider_keys.read_keys("OPENAI_API_KEY") == {}
        with pytest.raises(NoKeyring, match="no keyring on this system"):
            provider_keys.store_key("OPENAI_API_KEY", "secret")
    finally:
        keyring.set_keyring(before)
