"""A conversation for a model that takes no pictures: each is replaced by a sentence that says so.

Owns that alone. The conversation keeps its pictures, for the next model may take them.
"""

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
