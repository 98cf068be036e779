"""Words and names as every provider takes them."""

import pytest

from handrail.own_agent.sanitize import is_id, sanitize_text, sanitize_tool_name


def test_text_stays_as_it_is_where_it_is_sound() -> None:
    assert sanitize_text(" Grüße \N{GRINNING FACE}\n") == " Grüße \N{GRINNING FACE}\n"


def test_halves_of_a_character_are_put_together_and_a_lone_one_is_replaced() -> None:
    assert sanitize_text("\ud83d\ude00") == "\N{GRINNING FACE}"
    assert sanitize_text("a\ud83d") == "a\N{REPLACEMENT CHARACTER}"


def test_what_is_blank_is_said_otherwise() -> None:
    assert sanitize_text(" \n", "(nothing)") == "(nothing)"


@pytest.mark.parametrize("id", ["toolu_01A", "call-0", "0", "x" * 40])
def test_an_id_that_all_take(id: str) -> None:
    assert is_id(id)


@pytest.mark.parametrize("id", ["", "functions.look:0", "a b", "x" * 41, "ü"])
def test_an_id_that_some_refuse(id: str) -> None:
    assert not is_id(id)


def test_a_name_that_no_tool_can_have_becomes_one_that_could() -> None:
    assert sanitize_tool_name("look") == "look"
    assert sanitize_tool_name("server__look-at") == "server__look-at"
    assert sanitize_tool_name("functions.look at") == "functions_look_at"
    assert sanitize_tool_name("") == "_"
    assert len(sanitize_tool_name("x" * 200)) == 64
