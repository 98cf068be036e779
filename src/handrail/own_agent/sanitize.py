"""Words, names and values as every provider takes them: nothing blank, no halves of characters, plain names, real numbers.

Owns these rules alone. One of them broken in what is sent once is broken in everything that is sent from then on.

A conversation for a model that takes no pictures: each is replaced by a sentence that says so.
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
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def sound(text: str, instead: str = "") -> str:
    """The text without halves of characters, which some servers send apart; and what stands for a blank one."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text if text.strip() else instead


def is_id(id: str) -> bool:
    """Whether a call may be named so wherever its conversation is taken."""
    return _ID.fullmatch(id) is not None


def tool_name(name: str) -> str:
    """What a model took for the name of a tool, as one that could be."""
    return _STRANGE.sub("_", name)[:_LONGEST_NAME] or "_"


def plain(value: object) -> object:
    """A value of JSON without what only some call numbers: one infinity, and no provider takes the conversation any more."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: plain(each) for name, each in cast("dict[str, object]", value).items()}
        case list():
            return [plain(each) for each in cast("list[object]", value)]
        case _:
            return value


_LEFT_OUT = "[A picture was here, which this model cannot see.]"


def without_pictures(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    return [
        replace(message, parts=[_part(part) for part in message.parts])
        if isinstance(message, ModelRequest)
        else message
        for message in messages
    ]


def _part(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, UserPromptPart | ToolReturnPart):
        return part
    content = cast("str | Sequence[Any]", part.content)
    if isinstance(content, str):
        return part
    return replace(part, content=[_LEFT_OUT if _is_picture(each) else each for each in content])


def _is_picture(content: object) -> bool:
    return isinstance(content, BinaryContent | ImageUrl)
