"""A conversation for a model that takes no pictures."""

from pydantic_ai.messages import BinaryContent, ModelRequest, ToolReturnPart, UserPromptPart
from tests.support.loop_fakes import answer, call

from handrail.own_agent.sanitize import without_pictures

PICTURE = BinaryContent(b"png", media_type="image/png")


def test_each_picture_is_replaced_by_a_sentence_and_the_conversation_keeps_its_own() -> None:
    messages = [
        ModelRequest([UserPromptPart(["See this", PICTURE])]),
        answer(call("look", "1")),
        ModelRequest([ToolReturnPart("look", ["A cat", PICTURE], "1"), UserPromptPart("Well?")]),
    ]
    before = str(messages)
    shown = str(without_pictures(messages))
    assert "image/png" not in shown
    assert shown.count("which this model cannot see") == 2
    assert "See this" in shown
    assert "A cat" in shown
    assert "Well?" in shown
    assert str(messages) == before
