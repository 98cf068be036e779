"""Sanitising of text, ids, names and values so that every provider accepts them.

No blank text, no lone surrogates, plain names, finite numbers, and no pictures for models without image
input. A single violation would make a provider reject every later request of the conversation.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ToolReturnPart,
    UserPromptPart,
)

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_NAME_MAX = 64


def sanitize_text(text: str, instead: str = "") -> str:
    """The text without lone surrogates, which some servers produce; `instead` if it is blank."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text if text.strip() else instead


def is_id(id: str) -> bool:
    """Whether every provider accepts this as the id of a call."""
    return _ID.fullmatch(id) is not None


def sanitize_tool_name(name: str) -> str:
    """A tool name as the model sent it, reduced to characters that providers accept."""
    return _FORBIDDEN.sub("_", name)[:_NAME_MAX] or "_"


def sanitize_json(value: object) -> object:
    """A JSON value with infinities and NaN replaced by null; a provider rejects a conversation that holds
    one."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: sanitize_json(each) for name, each in cast("dict[str, object]", value).items()}
        case list():
            return [sanitize_json(each) for each in cast("list[object]", value)]
        case _:
            return value


_LEFT_OUT = "[A picture was here, which this model cannot see.]"


def without_pictures(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    return [
        replace(message, parts=[_without_pictures(part) for part in message.parts])
        if isinstance(message, ModelRequest)
        else message
        for message in messages
    ]


def _without_pictures(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, UserPromptPart | ToolReturnPart):
        return part
    content = cast("str | Sequence[Any]", part.content)
    if isinstance(content, str):
        return part
    return replace(part, content=[_LEFT_OUT if _is_picture(each) else each for each in content])


def _is_picture(content: object) -> bool:
    return isinstance(content, BinaryContent | ImageUrl)
