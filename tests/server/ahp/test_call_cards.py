"""What a card of a call shows of its input."""

from handrail.server.ahp.call_cards import reveal_input


def test_invisible_characters_are_spelled_out_however_deep_they_are() -> None:
    shown = reveal_input({"a\u200b": ["x\u202ey", {"b": {"c\u200d": "\x1b[2K"}}], "n": 1})
    assert shown == {"a\\u{200b}": ["x\\u{202e}y", {"b": {"c\\u{200d}": "\\e[2K"}}], "n": 1}
