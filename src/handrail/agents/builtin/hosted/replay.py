"""A conversation from before, shown again to whoever loads it.

Owns which message is said in which way. It does not know how a conversation is kept (sessions.py), nor how what is said
travels (speech.py).
"""

import base64
from collections.abc import Iterable, Mapping

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponsePart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from handrail.agents.builtin.hosted.speech import Speech
from handrail.agents.builtin.thinking.repair import is_note
from handrail.agents.builtin.tools.tool import Json, Result, Shown


def replay(messages: Iterable[ModelMessage], shown: Mapping[str, Shown], speech: Speech) -> None:
    """Say all of it anew; `shown` has how its calls were told of then."""
    for message in messages:
        for part in message.parts:
            if isinstance(message, ModelRequest):
                _heard(part, speech)  # pyright: ignore[reportArgumentType]
            else:
                _said(part, shown, speech)  # pyright: ignore[reportArgumentType]


def _heard(part: ModelRequestPart, speech: Speech) -> None:
    match part:
        case UserPromptPart() if is_note(part):
            speech.note(_words(part.content))
        case UserPromptPart(content=str(text)):
            speech.prompt({"type": "text", "text": text})
        case UserPromptPart(content=content):
            for block in filter(None, map(_block, content)):
                speech.prompt(block)
        case ToolReturnPart():
            failed = part.outcome != "success"
            ended = "done" if not failed else "failed"
            text = part.model_response_str()
            speech.call_ended(part.tool_call_id, Result(text=text, failed=failed, ended=ended))
        case _:
            pass


def _said(part: ModelResponsePart, shown: Mapping[str, Shown], speech: Speech) -> None:
    match part:
        case TextPart():
            speech.text(part.content)
        case ThinkingPart():
            speech.thought(part.content)
        case ToolCallPart():
            how = shown.get(part.tool_call_id) or Shown(title=part.tool_name)
            speech.call_started(part.tool_call_id, part.tool_name, how, part.args_as_dict())
        case _:
            pass


def _block(content: UserContent) -> Json | None:
    match content:
        case str():
            return {"type": "text", "text": content}
        case TextContent():
            return {"type": "text", "text": content.content}
        case BinaryContent():
            data = base64.b64encode(content.data).decode()
            return {"type": "image", "mimeType": content.media_type, "data": data}
        case _:
            return None


def _words(content: Iterable[UserContent]) -> str:
    return " ".join(each.content for each in content if isinstance(each, TextContent))
