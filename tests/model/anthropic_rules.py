"""What Anthropic asks of a request, and the sentence it refuses one with. Knows nothing of what is answered."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, cast

Json = dict[str, Any]
TOOL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
CACHE_POINTS = 4


def signature(thought: str) -> str:
    """By which the provider knows its own thoughts again."""
    return sha256(thought.encode()).hexdigest()


def problem(body: Json) -> str | None:
    """The first thing that is wrong."""
    return next(_problems(body), None)


def _problems(body: Json) -> Iterator[str]:
    if not body.get("model"):
        yield "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    yield from _thinking(body)
    yield from _tools(body.get("tools") or [])
    yield from _messages(body.get("messages") or [])
    if _cache_points(body) > CACHE_POINTS:
        yield f"A maximum of {CACHE_POINTS} blocks with cache_control may be provided. Found {_cache_points(body)}."


def _thinking(body: Json) -> Iterator[str]:
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
