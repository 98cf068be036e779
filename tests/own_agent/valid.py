"""Whether a conversation is one that every provider takes: stricter than any of them."""

import re
from collections.abc import Sequence

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


def check(messages: Sequence[ModelMessage]) -> None:
    """Raises AssertionError, with what is wrong."""
    ids: set[str] = set()
    awaited: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            assert place % 2 == 0, f"two requests in a row at {place}"
            _check_request(message, awaited)
            awaited = []
        else:
            assert place % 2 == 1, f"an answer at {place} where a request belongs"
            awaited = _check_answer(message, ids)
    assert not awaited, f"calls at the end without a result: {awaited}"
    assert len(
        ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(list(messages)))
    ) == len(messages)


def _check_request(request: ModelRequest, awaited: list[str]) -> None:
    assert request.parts, "an empty request"
    results = [part for part in request.parts if isinstance(part, ToolReturnPart)]
    assert [result.tool_call_id for result in results] == awaited, (
        f"results {results} for the calls {awaited}"
    )
    assert list(request.parts[: len(results)]) == results, "words before the results"
    for part in request.parts:
        assert isinstance(part, ToolReturnPart | UserPromptPart), f"a {part.part_kind}"
        _check_content(part.content)


def _check_content(content: object) -> None:
    if isinstance(content, list):
        assert content, "no content"
        for each in content:  # pyright: ignore[reportUnknownVariableType]
            _check_content(each)  # pyright: ignore[reportUnknownArgumentType]
    elif not isinstance(content, BinaryContent):
        text = content.content if isinstance(content, TextContent) else content
        assert isinstance(text, str), text
        assert text.strip(), "blank text"


def _check_answer(answer: ModelResponse, ids: set[str]) -> list[str]:
    assert any(not isinstance(part, ThinkingPart) for part in answer.parts), "thoughts alone"
    for part in answer.parts:
        if isinstance(part, TextPart):
            assert part.content.strip(), "blank text"
    calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    for call in calls:
        assert re.fullmatch("[A-Za-z0-9_-]{1,40}", call.tool_call_id), f"the id {call.tool_call_id!r}"
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call.tool_name), f"the tool {call.tool_name!r}"
        assert call.tool_call_id not in ids, f"two calls {call.tool_call_id}"
        assert isinstance(call.args, dict), f"the input {call.args!r}"
        ids.add(call.tool_call_id)
    return [call.tool_call_id for call in calls]
