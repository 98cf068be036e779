"""OpenAI's chat completions API: streamed and whole answers, and strict checks of a request."""

import json
import re
from collections.abc import Iterator, Sequence
from secrets import token_hex
from typing import Any, cast

from tests.support.model_server.anthropic import text_of
from tests.support.model_server.script import Dialect, Json, ScriptMessage, Turn, data, words

ROLES = {"system", "developer", "user", "assistant", "tool"}
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def problem(body: Json) -> str | None:
    """The first thing that is wrong."""
    return next(_problems(body), None)


def _problems(body: Json) -> Iterator[str]:
    if not body.get("model"):
        yield "you must provide a model parameter"
    if not body.get("messages"):
        yield "[] is too short - 'messages'"
    for index, tool in enumerate(body.get("tools") or []):
        if not NAME.match(tool["function"]["name"]):
            yield f"Invalid 'tools[{index}].function.name': string does not match pattern '{NAME.pattern}'."
    messages: Sequence[Json] = body.get("messages") or []
    for index, message in enumerate(messages):
        yield from _message(index, message)
    yield from _pairs(messages)


def _message(index: int, message: Json) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    if role not in ROLES:
        yield f"Invalid value: '{role}'. Supported values are: {sorted(ROLES)}."
    if content is None and not message.get("tool_calls"):
        yield f"Invalid value for 'content' of messages[{index}]: expected a string, got null."
    if role == "user" and not content:
        yield f"messages[{index}]: empty content"
    if isinstance(content, list) and any(map(_empty, cast("list[Json]", content))):
        yield f"messages[{index}]: empty text"
    uses: list[Json] = message.get("tool_calls") or []
    for use in uses:
        yield from _use(index, use)


def _empty(block: Json) -> bool:
    return block.get("type") == "text" and not block["text"]


def _use(index: int, use: Json) -> Iterator[str]:
    arguments = use["function"]["arguments"]
    try:
        told = json.loads(arguments)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        yield f"messages[{index}]: the arguments of {use['id']} are no JSON object: {arguments!r}"


def _pairs(messages: Sequence[Json]) -> Iterator[str]:
    """After every message with uses of tools, one result for each; and no result otherwise."""
    owed: list[str] = []
    end: Json = {"role": "end"}
    for index, message in enumerate([*messages, end]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in owed:
                yield (
                    f"Invalid parameter: messages[{index}] with role 'tool' must be a response to a preceding message "
                    "with 'tool_calls'."
                )
            else:
                owed.remove(message["tool_call_id"])
            continue
        if owed:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(owed)}"
            )
        uses: list[Json] = message.get("tool_calls") or []
        owed = [use["id"] for use in uses]


KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def said(body: Json) -> list[ScriptMessage]:
    return [ScriptMessage(each["role"], text_of(each.get("content") or "")) for each in body["messages"]]


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
    problem=problem,
    stream=stream,
    whole=whole,
    error=error,
    overloaded=data({"error": {"message": "The server is overloaded", "type": "server_error", "code": None}}),
)
