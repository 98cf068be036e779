"""OpenAI's responses API: streamed and whole answers, and the main checks of a request."""

from collections.abc import Iterator, Sequence
from itertools import count, groupby
from secrets import token_hex
from typing import Any

from tests.support.model_server.openai_chat import error
from tests.support.model_server.script import Call, Dialect, Json, ScriptMessage, Turn, event, words


def said(body: Json) -> list[ScriptMessage]:
    """What the model gave in one answer stands there in pieces."""
    asked: Any = body["input"]
    items: list[Json] = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    return [
        ScriptMessage(role, "\n".join(_text(item.get("content") or "") for item in pieces))
        for role, pieces in groupby(items, _role)
    ]


CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")


def _role(item: Json) -> str:
    if item.get("type") in OUTPUTS:
        return "tool"
    return item.get("role") or "assistant"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def problem(body: Json) -> str | None:
    """The first thing that is wrong."""
    return next(_problems(body), None)


def _problems(body: Json) -> Iterator[str]:
    items: list[Json] = body["input"] if isinstance(body.get("input"), list) else []
    if not body.get("input"):
        yield "Missing required parameter: 'input'."
    called = [item["call_id"] for item in items if item.get("type") in CALLS]
    answered = [item["call_id"] for item in items if item.get("type") in OUTPUTS]
    for each in called:
        if each not in answered:
            yield f"No tool output found for function call {each}."
    for each in answered:
        if each not in called:
            yield f"No tool call found for function call output with call_id {each}."
    for item, following in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") == "reasoning" and _role(following) != "assistant":
            yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."


def stream(turn: Turn, model: str) -> Iterator[str]:
    number = count()

    def told(kind: str, **values: Any) -> str:
        return event(kind, sequence_number=next(number), **values)

    about = _about(model)
    yield told("response.created", response={**about, "status": "in_progress", "output": []})
    items = _items(turn)
    for index, item in enumerate(items):
        for kind, values in _added(item):
            yield told(kind, output_index=index, **values)
        if turn.hang and index == len(items) - 1:
            return
        yield told("response.output_item.done", output_index=index, item=item)
    if not turn.hang:
        full = whole(turn, model)
        kind = "response.completed" if full["status"] == "completed" else "response.incomplete"
        yield told(kind, response={**full, "id": about["id"]})


def whole(turn: Turn, model: str) -> Json:
    why = {"length": "max_output_tokens", "refusal": "content_filter"}.get(turn.stop)
    return {
        **_about(model),
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "output": _items(turn),
        "usage": _usage(turn),
    }


def _about(model: str) -> Json:
    more: Json = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}}
    return {"id": f"resp_{token_hex(8)}", "object": "response", "created_at": 1, "model": model, **more}


def _items(turn: Turn) -> list[Json]:
    """Of an answer, as they are at last."""
    return [
        *([_thought(turn.think)] if turn.think else []),
        *([_message(turn.say)] if turn.say else []),
        *map(_called, turn.uses),
    ]


def _thought(thought: str) -> Json:
    summary = [{"type": "summary_text", "text": thought}]
    return {
        "type": "reasoning",
        "id": f"rs_{token_hex(8)}",
        "summary": summary,
        "encrypted_content": "sealed",
    }


def _message(text: str) -> Json:
    content: list[Json] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    about: Json = {"type": "message", "id": f"msg_{token_hex(8)}", "role": "assistant", "status": "completed"}
    return {**about, "content": content}


def _called(call: Call) -> Json:
    about = {"id": f"fc_{token_hex(8)}", "call_id": f"call_{token_hex(8)}", "name": call.tool}
    if call.freeform:
        return {"type": "custom_tool_call", **about, "input": call.raw, "status": "completed"}
    group = {"namespace": call.namespace} if call.namespace else {}
    return {"type": "function_call", **about, **group, "arguments": call.raw, "status": "completed"}


def _added(item: Json) -> Iterator[tuple[str, Json]]:
    """How one comes to be."""
    match item["type"]:
        case "reasoning":
            yield "response.output_item.added", {"item": {**item, "summary": [], "encrypted_content": ""}}
            part: Json = {"item_id": item["id"], "summary_index": 0}
            yield (
                "response.reasoning_summary_part.added",
                {**part, "part": {"type": "summary_text", "text": ""}},
            )
            pieces: Sequence[str] = words(item["summary"][0]["text"])
            yield from (("response.reasoning_summary_text.delta", {**part, "delta": each}) for each in pieces)
        case "message":
            yield "response.output_item.added", {"item": {**item, "content": [], "status": "in_progress"}}
            part = {"item_id": item["id"], "content_index": 0}
            full: Json = item["content"][0]
            yield "response.content_part.added", {**part, "part": {**full, "text": ""}}
            for each in words(full["text"]):
                yield "response.output_text.delta", {**part, "delta": each, "logprobs": []}
        case "custom_tool_call":
            yield "response.output_item.added", {"item": {**item, "input": "", "status": "in_progress"}}
            yield "response.custom_tool_call_input.delta", {"item_id": item["id"], "delta": item["input"]}
        case _:
            yield "response.output_item.added", {"item": {**item, "arguments": "", "status": "in_progress"}}
            yield (
                "response.function_call_arguments.delta",
                {"item_id": item["id"], "delta": item["arguments"]},
            )


def _usage(turn: Turn) -> Json:
    read = turn.tokens("input") + turn.tokens("cached") + turn.tokens("written")
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": turn.tokens("cached")},
        "output_tokens": turn.tokens("output"),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + turn.tokens("output"),
    }


RESPONSES = Dialect(
    name="responses",
    said=said,
    problem=problem,
    stream=stream,
    whole=whole,
    error=error,
    overloaded=event(
        "error", sequence_number=99, code="server_error", message="The server is overloaded", param=None
    ),
)
