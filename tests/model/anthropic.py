"""Anthropic's messages, spoken: whole, or event by event. What a request must be like is anthropic_rules.py's."""

import json
from collections.abc import Iterator, Sequence
from secrets import token_hex
from typing import Any

from tests.model.anthropic_rules import problem, signature
from tests.model.dialect import Dialect, Json, event
from tests.model.script import Said, Turn, words

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def said(body: Json) -> list[Said]:
    return [Said(each["role"], text_of(each["content"])) for each in body["messages"]]


def text_of(content: Any) -> str:
    """What a message says; results of tools apart."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if block.get("type") == "text")


def whole(turn: Turn, model: str) -> Json:
    content = [_filled(block) for block in _blocks(turn)]
    return {**_about(model), "content": content, **_stop(turn), "usage": _usage(turn)}


def stream(turn: Turn, model: str) -> Iterator[str]:
    started: Json = {**_about(model), "content": [], "usage": _usage(turn)}
    yield event("message_start", message={**started, "stop_reason": None, "stop_sequence": None})
    blocks = _blocks(turn)
    for index, (empty, deltas) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        if turn.hang and index == len(blocks) - 1:
            return
        yield event("content_block_stop", index=index)
    if not turn.hang:
        yield event("message_delta", delta=_stop(turn), usage={"output_tokens": turn.tokens("output")})
        yield event("message_stop")


Block = tuple[Json, Sequence[Json]]
"""One of an answer: as it begins, and what is added piece by piece."""


def _blocks(turn: Turn) -> list[Block]:
    return [
        *([_thinking(turn.think)] if turn.think else []),
        *([_text(turn.say)] if turn.say else []),
        *(_use(call.tool, call.raw) for call in turn.uses),
    ]


def _thinking(thought: str) -> Block:
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": word} for word in words(thought)]
    signed: Json = {"type": "signature_delta", "signature": signature(thought)}
    return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]


def _text(text: str) -> Block:
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in words(text)]


def _use(tool: str, raw: str) -> Block:
    half = len(raw) // 2
    pieces = [{"type": "input_json_delta", "partial_json": each} for each in (raw[:half], raw[half:])]
    return {"type": "tool_use", "id": f"toolu_{token_hex(12)}", "name": tool, "input": {}}, pieces


def _filled(block: Block) -> Json:
    """A block with all that is added to it."""
    full, deltas = {**block[0]}, block[1]
    for name in ("text", "thinking", "signature"):
        if name in full:
            full[name] = "".join(delta.get(name, "") for delta in deltas)
    if full["type"] == "tool_use":
        full["input"] = json.loads("".join(delta["partial_json"] for delta in deltas))
    return full


def _about(model: str) -> Json:
    return {"id": f"msg_{token_hex(8)}", "type": "message", "role": "assistant", "model": model}


def _stop(turn: Turn) -> Json:
    by_itself = "tool_use" if turn.uses else "end_turn"
    return {
        "stop_reason": {"length": "max_tokens", "refusal": "refusal"}.get(turn.stop, by_itself),
        "stop_sequence": None,
    }


def _usage(turn: Turn) -> Json:
    return {
        "input_tokens": turn.tokens("input"),
        "output_tokens": turn.tokens("output"),
        "cache_read_input_tokens": turn.tokens("cached"),
        "cache_creation_input_tokens": turn.tokens("written"),
    }


def error(status: int, message: str) -> Json:
    about = {"type": KINDS.get(status, "api_error"), "message": message}
    return {"type": "error", "error": about, "request_id": f"req_{token_hex(8)}"}


ANTHROPIC = Dialect(
    name="anthropic",
    said=said,
    has_tools=lambda body: bool(body.get("tools")),
    streams=lambda body: bool(body.get("stream")),
    problem=problem,
    stream=stream,
    whole=whole,
    error=error,
    overloaded=event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
)
