"""Anthropic's messages API: streamed and whole answers, and the checks of a request."""

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from secrets import token_hex
from typing import Any, cast

from tests.support.model_server.script import Dialect, Json, ScriptMessage, Turn, event, words

TOOL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
CACHE_POINTS = 4


def signature(thought: str) -> str:
    """The signature by which the provider recognizes its thoughts."""
    return sha256(thought.encode()).hexdigest()


def problem(body: Json) -> str | None:
    """The first thing that is wrong."""
    return next(_problems(body), None)


def _problems(body: Json) -> Iterator[str]:
    if not body.get("model"):
        yield "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    yield from _check_thinking(body)
    yield from _tools(body.get("tools") or [])
    yield from _messages(body.get("messages") or [])
    if _cache_points(body) > CACHE_POINTS:
        yield f"A maximum of {CACHE_POINTS} blocks with cache_control may be provided. Found {_cache_points(body)}."


def _check_thinking(body: Json) -> Iterator[str]:
    told: Json = body.get("thinking") or {}
    if told.get("type") == "enabled" and not 1024 <= told.get("budget_tokens", 0) < body["max_tokens"]:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`, which must be at least 1024."


def _tools(tools: Sequence[Json]) -> Iterator[str]:
    names = [tool["name"] for tool in tools]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    for index, tool in enumerate(tools):
        if not TOOL_NAME.match(tool["name"]):
            yield f"tools.{index}.custom.name: String should match pattern '{TOOL_NAME.pattern}'"
        schema: Json = tool.get("input_schema") or {}
        if "type" not in tool and schema.get("type") != "object":
            yield f"tools.{index}.custom.input_schema.type: Input should be 'object'"


def _messages(messages: Sequence[Json]) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
    for index, message in enumerate(messages):
        if message["role"] not in {"user", "assistant", "system"}:
            yield f'messages: Unexpected role "{message["role"]}".'
        if (
            message["content"] or "output_config" not in message
        ):  # a message may only change the configuration
            yield from _content(index, message["content"])
    yield from _order(messages)
    yield from _pairs(messages)


def _order(messages: Sequence[Json]) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    if messages and messages[-1]["role"] == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."


def _content(index: int, content: Any) -> Iterator[str]:
    if not content:
        yield f"messages.{index}: all messages must have non-empty content"
    for at, block in enumerate(blocks(content)):
        where = f"messages.{index}.content.{at}"
        match block["type"]:
            case "text" if not block["text"]:
                yield f"messages: text content blocks must be non-empty ({where})"
            case "text" if not block["text"].strip():
                yield f"messages: text content blocks must contain non-whitespace text ({where})"
            case "tool_use" if not isinstance(block["input"], dict):
                yield f"{where}.tool_use.input: Input should be a valid dictionary"
            case "tool_use" if not TOOL_ID.match(block["id"]):
                yield f"{where}.tool_use.id: String should match pattern '{TOOL_ID.pattern}'"
            case "tool_result":
                yield from _content(index, block["content"]) if block.get("content") else ()
            case "thinking" if block.get("signature") != signature(block["thinking"]):
                yield f"{where}: Invalid `signature` in `thinking` block"
            case _:
                pass


def _pairs(messages: Sequence[Json]) -> Iterator[str]:
    """Every use of a tool has its result at the beginning of the next message, and every result its use."""
    used: list[str] = []
    ever: set[str] = set()
    for index, message in enumerate(messages):
        content = blocks(message["content"])
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        first = [block["type"] == "tool_result" for block in content[: len(results)]]
        if missing := [each for each in used if each not in results or not all(first)]:
            yield (
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        if orphans := [each for each in results if each not in used]:
            yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(orphans)}."
        if len(results) != len(set(results)):
            yield f"messages.{index}: each tool_use must have a single result"
        used = [block["id"] for block in content if block["type"] == "tool_use"]
        if len(used) != len(set(used)) or ever & set(used):
            yield f"messages.{index}: `tool_use` ids must be unique"
        ever |= set(used)
    if used:
        yield f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks: {', '.join(used)}."


def blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _cache_points(value: Any) -> int:
    """How many places are marked to be cached, anywhere in a request."""
    if isinstance(value, dict):
        told = cast("Json", value)
        return bool(told.get("cache_control")) + sum(_cache_points(each) for each in told.values())
    if isinstance(value, list):
        return sum(_cache_points(each) for each in cast("list[Any]", value))
    return 0


KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def said(body: Json) -> list[ScriptMessage]:
    return [ScriptMessage(each["role"], text_of(each["content"])) for each in body["messages"]]


def text_of(content: Any) -> str:
    """The text of a message, without tool results."""
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
"""A content block: its start, and its deltas."""


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
    problem=problem,
    stream=stream,
    whole=whole,
    error=error,
    overloaded=event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
)
