"""`handrail search`."""

import secrets

import pytest
from tests.support.cli_home import CommandResult, Home, wait_for

pytestmark = pytest.mark.e2e


def test_words_are_found_in_what_was_said_and_what_calls_were_asked_for(handrail: Home) -> None:
    word = f"zebra{secrets.token_hex(4)}"
    handrail.ok("chat", "--agent", "demo", "--new", f"tell me of the {word}")

    def look() -> CommandResult | None:
        found = handrail.ok("search", "--here", word)
        return found if word in found.out else None

    shown = wait_for(look, "the word to be found").out
    assert "message, just now" in shown
    assert "tell me of the" in shown
    hits = handrail.ok("search", word, "--json").json
    assert {hit["kind"] for hit in hits} <= {"message", "title"}
    assert "Nothing was found" in handrail.ok("search", "nosuchwordanywhere").err
