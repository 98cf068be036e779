"""How much of a model's context a conversation takes, as far as one can tell without the model's own dictionary.

Owns the estimate: what the provider counted last, and a rule of thumb for what came after.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

PER_TOKEN = 4  # characters, of English text and of code
_PICTURE = 6_000  # characters' worth, of an image


def tokens(messages: Sequence[ModelMessage]) -> int:
    later = list(takewhile(lambda message: not _counted(message), reversed(messages)))
    counted = 0 if len(later) == len(messages) else _counted(messages[-1 - len(later)])
    return counted + characters(later) // PER_TOKEN


def characters(messages: Sequence[ModelMessage]) -> int:
    return sum(_length(part) for message in messages for part in message.parts)


def _counted(message: ModelMessage) -> int:
    if not isinstance(message, ModelResponse):
        return 0
    return message.usage.input_tokens + message.usage.output_tokens


def _length(part: object) -> int:
    match part:
        case TextPart(content=str(text)) | ThinkingPart(content=str(text)):
            return len(text)
        case ToolCallPart():
            return len(part.tool_name) + len(part.args_as_json_str())
        case UserPromptPart(content=content) | ToolReturnPart(content=content):
            return _content(content)
        case _:
            return 0


def _content(content: object) -> int:
    match content:
        case str(text) | TextContent(content=text):
            return len(text)
        case BinaryContent():
            return _PICTURE
        case list() | tuple():
            return sum(_content(each) for each in cast("Sequence[object]", content))
        case _:
            return 0
