"""`handrail keys`: kept in a keyring, found where they are, and never shown."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli_home import Home, Screen
from tests.support.fake_keyring import MemoryKeyring, memory_keyring

from handrail.cli.command_line import run
from handrail.config import PROVIDER_VARIABLES

KEY = "sk-of-somebody-0123456789"


@pytest.fixture
def ring(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeyring]:
    """A keyring, and an environment in which nothing else has a key."""
    for name in PROVIDER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with memory_keyring() as made:
        yield made


def pipe(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    assert run(["keys", "--json"]) == 0
    return {row["name"]: row["found"] for row in json.loads(capsys.readouterr().out) if row["found"]}


def test_a_key_that_is_piped_in_is_kept_listed_without_its_value_and_removed(
    ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(f"{KEY}\n", monkeypatch)
    assert run(["keys", "set", "anthropic"]) == 0
    assert ring.kept == {("handrail", "ANTHROPIC_API_KEY"): KEY}
    assert KEY not in "".join(capsys.readouterr())

    assert run(["keys"]) == 0
    listed = capsys.readouterr()
    assert "✓ keyring" in next(line for line in listed.out.splitlines() if "ANTHROPIC_API_KEY" in line)
    assert KEY not in listed.out + listed.err
    assert found(capsys) == {"ANTHROPIC_API_KEY": ["keyring"]}

    assert run(["keys", "remove", "ANTHROPIC_API_KEY"]) == 0
    assert ring.kept == {}
    assert run(["keys", "remove", "ANTHROPIC_API_KEY"]) == 1
    assert "There is no ANTHROPIC_API_KEY" in capsys.readouterr().err


def test_every_place_where_a_key_is_found_is_named_in_the_order_in_which_it_counts(
    ring: MemoryKeyring, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ring.kept["handrail", "OPENAI_API_KEY"] = KEY
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GOOGLE_API_KEY", " ")
    ours = f'[[agents]]\nname = "handrail"\ncommand = ["x"]\nenv = {{ OPENAI_API_KEY = "{KEY}" }}\n'
    other = f'[[agents]]\nname = "other"\ncommand = ["x"]\nenv = {{ GEMINI_API_KEY = "{KEY}" }}\n'
    (home / "config.toml").write_text(ours + other)
    assert found(capsys) == {
        "OPENAI_API_KEY": ["environment", "config", "keyring"],
        "OLLAMA_BASE_URL": ["environment"],
    }


@pytest.mark.parametrize("text", ["", "  \n", "two words", "two\nlines", "\x1b[31m", "k" * 5000])
def test_what_is_no_key_is_not_kept(
    text: str, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(text, monkeypatch)
    assert run(["keys", "set", "openai"]) == 1
    assert "othing was" in capsys.readouterr().err
    assert ring.kept == {}


def test_where_there_is_no_keyring_a_sentence_says_so_and_what_was_typed_is_never_shown(alone: Home) -> None:
    alone.env["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    with Screen(alone, "keys", "set", "openai") as screen:
        screen.shows("OPENAI_API_KEY (not shown): ")
        screen.type(f"{KEY}\n")
        assert KEY not in screen.shows("There is no keyring on this system.")
        assert screen.ends() == 1
