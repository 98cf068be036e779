"""What OpenAI, and the strictest of those that speak like it, ask of a request. Knows nothing of what is answered."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

Json = dict[str, Any]
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
