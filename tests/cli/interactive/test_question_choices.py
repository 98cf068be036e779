"""What each key answers."""

import pytest

from handrail.cli.interactive.question import choice_for_key, is_allow_key, key_line


@pytest.mark.parametrize(
    ("key", "risk", "means"),
    [
        ("a", "low", "allow"),
        ("a", "medium", "allow"),
        ("a", "high", None),
        ("a", "unheard of", None),
        ("A", "high", "allow"),
        ("s", "low", "session"),
        ("r", "high", "rule"),
        ("e", "high", "edit"),
        ("o", "low", "original"),
        ("d", "high", "deny"),
        ("D", "low", "reason"),
        ("n", "low", "next"),
        ("\n", "low", None),
        (" ", "low", None),
        ("y", "low", None),
    ],
)
def test_only_a_named_key_answers_and_high_risk_takes_a_capital(
    key: str, risk: str, means: str | None
) -> None:
    assert choice_for_key(key, risk) == means


@pytest.mark.parametrize("key", ["a", "s", "r", "e", "y", "\n", " "])
def test_no_key_but_a_capital_one_allows_high_risk(key: str) -> None:
    assert not is_allow_key(key, "high")
    assert is_allow_key("A", "high")


def test_keys_are_shown_for_what_can_be_answered() -> None:
    assert key_line("low", ruled=True, edited=False).startswith(
        "[a]llow once   [s]ession   [r]ule…   [e]dit…   [d]eny"
    )
    assert "[s]ession" not in key_line("low", ruled=False, edited=False)
    edited = key_line("high", ruled=True, edited=True)
    assert edited.startswith("[A]llow (Shift) as edited   [e]dit again   [o]riginal")
    assert "[r]ule" not in edited


def test_what_cannot_be_edited_is_not_offered_to_be() -> None:
    assert "[e]dit" not in key_line("low", ruled=False, edited=False, editable=False)
