"""The estimate of how much of a context is taken."""

from pydantic_ai.messages import BinaryContent, ModelRequest, ThinkingPart, ToolReturnPart, UserPromptPart
from tests.support.loop_fakes import answer, call

from handrail.own_agent.budget import characters, tokens
from handrail.own_agent.history import note


def test_nothing_takes_nothing() -> None:
    assert tokens([]) == 0


def test_what_the_provider_counted_counts_and_what_came_later_is_estimated() -> None:
    request = ModelRequest([UserPromptPart("x" * 4000)])
    result = ModelRequest([ToolReturnPart("look", "y" * 400, "1")])
    assert tokens([request]) == 1000
    assert tokens([request, answer(call("look"), tokens=7000), result]) == 7100
    assert tokens([request, answer("z" * 40, tokens=0), result]) == 1110


def test_every_sort_of_content_is_measured() -> None:
    picture = BinaryContent(b"png", media_type="image/png")
    assert characters([ModelRequest([note("abc"), UserPromptPart(["de", "f"])])]) == 6
    assert characters([answer(ThinkingPart("abc"), "def", call("look", args='{"a":1}'))]) == 17
    assert characters([ModelRequest([UserPromptPart(["", picture])])]) > 1000
