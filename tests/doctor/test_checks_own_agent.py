"""Our own agent's finding: what it is made of, and where it has a key; never the key."""

from pathlib import Path

import pytest
from tests.support.fake_keyring import memory_keyring

from handrail.doctor import checks
from handrail.paths import Places

KEY = "sk-of-somebody-0123456789"


def test_where_it_finds_a_key_is_said_and_not_which(home: Path) -> None:
    with memory_keyring() as ring:
        without = checks.check_own_agent(Places.under(home), {})
        assert (without.level, "no key" in without.says) == ("ok", True)
        ring.kept["handrail", "ANTHROPIC_API_KEY"] = KEY
        well = checks.check_own_agent(Places.under(home), {"OPENAI_BASE_URL": "http://127.0.0.1:9"})
    assert well.says == "Our own agent has ANTHROPIC_API_KEY (keyring); OPENAI_BASE_URL (environment)."


def test_a_library_that_is_missing_is_bad(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MADE_OF", ("acp", "no_such_library"))
    found = checks.check_own_agent(Places.under(home), {})
    assert (found.level, "no_such_library" in found.says) == ("bad", True)
