"""OpenAI's chat completions, spoken: whole, or chunk by chunk. What a request must be like is openai_rules.py's."""

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

from tests.model.anthropic import text_of
from tests.model.dialect import Dialect, Json, data
from tests.model.openai_rules import problem
from tests.model.script import Said, Turn, words

KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def said(body: Json) -> list[Said]:
    return [Said(each["role"], text_of(each.get("content") or "")) for each in body["messages"]]


def whole(turn: Turn, model: str) -> Json:
    message: Json = {"role": "assistant", "content": turn.say or None}
    if turn.think:
        message["reasoning_content"] = turn.think
    if turn.uses:
        message["tool_calls"] = _uses(turn)
    choice = {"index": 0, "message": message, "finish_reason": _stop(turn)}
    return {**_about(model), "object": "chat.completion", "choices": [choice], "usage": _usage(turn)}


def stream(turn: Turn, model: str) -> Iterator[str]:
    about = {**_about(model), "object": "chat.completion.chunk"}

    def chunk(delta: Json, finish: str | None = None) -> str:
        return data({**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for delta in _deltas(turn):
        yield chunk(delta)
    if not turn.hang:
        yield chunk({}, _stop(turn))
        yield data({**about, "choices": [], "usage": _usage(turn)})
        yield "data: [DONE]\n\n"


def _deltas(turn: Turn) -> Iterator[Json]:
    yield from ({"reasoning_content": word} for word in words(turn.think))
    yield from ({"content": word} for word in words(turn.say))
    for index, use in enumerate(_uses(turn)):
        raw = use["function"]["arguments"]
        begun = {**use, "function": {"name": use["function"]["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **begun}]}
        half = len(raw) // 2
        yield from (
            {"tool_calls": [{"index": index, "function": {"arguments": each}}]}
            for each in (raw[:half], raw[half:])
        )


def _uses(turn: Turn) -> list[Json]:
    return [
        {
            "id": f"call_{token_hex(12)}",
            "type": "function",
            "function": {"name": call.tool, "arguments": call.raw},
        }
        for call in turn.uses
    ]


def _about(model: str) -> Json:
    return {"id": f"chatcmpl-{token_hex(8)}", "created": 1, "model": model}


def _stop(turn: Turn) -> str:
    by_itself = "tool_calls" if turn.uses else "stop"
    return {"length": "length", "refusal": "content_filter"}.get(turn.stop, by_itself)


def _usage(turn: Turn) -> Json:
    read = turn.tokens("input") + turn.tokens("cached") + turn.tokens("written")
    return {
        "prompt_tokens": read,
        "completion_tokens": turn.tokens("output"),
        "total_tokens": read + turn.tokens("output"),
        "prompt_tokens_details": {"cached_tokens": turn.tokens("cached")},
    }


def error(status: int, message: str) -> Json:
    kind, code = KINDS.get(status, ("invalid_request_error" if status < 500 else "server_error", None))
    if "maximum context length" in message:
        code = "context_length_exceeded"
    about: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": code}
    return {"error": about}


OPENAI = Dialect(
    name="openai",
    said=said,
    has_tools=lambda body: bool(body.get("tools")),
    streams=lambda body: bool(body.get("stream")),
    problem=problem,
    stream=stream,
    whole=whole,
    error=error,
    overloaded=data({"error": {"message": "The server is overloaded", "type": "server_error", "code": None}}),
)
