"""OpenAI itself, which is spoken to in a dialect of its own."""

import pytest
from pydantic_ai.messages import ModelRequest, ThinkingPart, ToolCallPart, ToolReturnPart
from tests.support.model_providers import GPT, LOOK, PROMPT, StreamRecorder, openai_clients
from tests.support.model_server.script import Call, Trouble, Turn

pytestmark = pytest.mark.anyio


async def test_it_is_heard_and_answered_with_results_and_keeps_its_own_thoughts() -> None:
    heard = StreamRecorder()
    async with openai_clients() as talk:
        talk.server.play(
            Turn("Two words.", "look", {"a": 1}, think="Let me see.", calls=(Call("look", {"a": 2}),))
        )
        first = await talk.ask(GPT, heard, "high")
        assert (heard.words, heard.thoughts) == (["Two ", "words."], ["Let ", "me ", "see."])
        calls = [part for part in first.parts if isinstance(part, ToolCallPart)]
        results = [ToolReturnPart(call.tool_name, "seen", call.tool_call_id) for call in calls]
        talk.server.play(Turn("Seen."))
        model = await talk.models.model(GPT, "high")
        await model.request([*PROMPT, first, ModelRequest(results)], [LOOK], heard)
        assert talk.server.refused == []
    body = talk.server.asked[1].body
    assert body["store"] is False
    assert body["reasoning"]["effort"] == "high"
    assert [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"] == [
        "sealed"
    ]
    assert any(isinstance(part, ThinkingPart) for part in first.parts)
    assert talk.server.asked[1].headers["authorization"] == "Bearer sk-of-openai"


@pytest.mark.parametrize("trouble", [429, 500, 503, "refuse", "broken", "stall", "overloaded"])
async def test_what_passes_is_asked_again(trouble: Trouble) -> None:
    heard = StreamRecorder()
    async with openai_clients() as talk:
        talk.server.play(Turn("At last, an answer.", trouble=(trouble,)))
        await talk.ask(GPT, heard)
    assert ("".join(heard.words), len(heard.agains)) == ("At last, an answer.", 1)


@pytest.mark.parametrize(
    ("stop", "reason"), [("", "stop"), ("length", "length"), ("refusal", "content_filter")]
)
async def test_why_an_answer_ends_is_known(stop: str, reason: str) -> None:
    async with openai_clients() as talk:
        talk.server.play(Turn("So far.", stop=stop))  # pyright: ignore[reportArgumentType]
        assert (await talk.ask(GPT)).finish_reason == reason
