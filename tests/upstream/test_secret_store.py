"""Secrets of MCP servers, with a keyring of our own and without one."""

from pathlib import Path

import pytest
from tests.support.fake_keyring import KeyringState, rings

from handrail.upstream.secret_store import BadSecret, SecretStore, fill_references, find_references

__all__ = ["rings"]


def test_a_value_is_in_the_keyring_and_only_its_name_in_the_file(tmp_path: Path, rings: KeyringState) -> None:
    path = tmp_path / "secrets.json"
    assert SecretStore(path).set("TOKEN", "s3cret").kept == "keyring"
    store = SecretStore(path)
    assert [each.name for each in store.list()] == ["TOKEN"]
    assert store.mask("has s3cret") == "has s3cret"
    assert store.get("TOKEN", "OTHER") == {"TOKEN": "s3cret"}
    assert store.mask("has s3cret") == "has [secret]"
    assert "s3cret" not in path.read_text()
    assert store.delete("TOKEN")
    assert not store.delete("TOKEN")
    assert (store.list(), rings.held) == ([], {})


def test_without_a_keyring_a_value_is_in_a_file_of_this_user(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    assert SecretStore(path).set("TOKEN", "s3cret").kept == "file"
    assert path.stat().st_mode & 0o777 == 0o600
    assert SecretStore(path).get("TOKEN") == {"TOKEN": "s3cret"}


def test_a_value_that_was_replaced_or_deleted_is_masked_while_a_server_may_still_have_it(
    tmp_path: Path,
) -> None:
    store = SecretStore(tmp_path / "secrets.json")
    store.set("TOKEN", "first-value")
    assert store.get("TOKEN") == {"TOKEN": "first-value"}  # a server is started with it
    store.set("TOKEN", "second-value")
    assert store.mask("first-value, second-value") == "[secret], [secret]"
    store.delete("TOKEN")
    assert store.mask("first-value, second-value") == "[secret], [secret]"


def test_a_damaged_file_is_said_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("{oops")
    for use in (lambda: SecretStore(path).get("A"), lambda: SecretStore(path).set("A", "x")):
        with pytest.raises(BadSecret, match="Repair or delete it"):
            use()
    assert path.read_text() == "{oops"


def test_settings_refer_to_secrets_by_name() -> None:
    value = "Bearer {secret:TOKEN} {secret:no-name}"
    assert find_references([value]) == ["TOKEN"]
    assert fill_references(value, {"TOKEN": "x"}) == "Bearer x {secret:no-name}"
