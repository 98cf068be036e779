"""A conversation as a model was told it, in words that hold for every provider: who said what, and what calls came to."""

from dataclasses import dataclass
from typing import Any, Literal

from tests.model.record import Asked

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said, a call, or a call's result."""

    kind: Literal["user", "assistant", "call", "result"]
    text: str
    id: str = ""
    failed: bool = False


def heard_by(asked: Asked) -> list[Message]:
    read = _of_anthropic if asked.dialect == "anthropic" else _of_openai
    return [found for message in asked.body["messages"] for found in read(message)]


def _of_anthropic(message: Json) -> list[Message]:
    content = message["content"]
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_block(message["role"], block) for block in blocks]


def _block(role: Literal["user", "assistant"], block: Json) -> Message:
    match block["type"]:
        case "tool_use":
            return Message("call", block["name"], block["id"])
        case "tool_result":
            failed = bool(block.get("is_error"))
            return Message("result", _text(block["content"]), block["tool_use_id"], failed)
        case kind:
            return Message(role, str(block.get("text") or block.get(kind)))


def _of_openai(message: Json) -> list[Message]:
    if message["role"] == "tool":
        return [Message("result", _text(message["content"]), message["tool_call_id"])]
    kind: Literal["user", "assistant"] = "assistant" if message["role"] == "assistant" else "user"
    said = [Message(kind, _text(message["content"]))] if message.get("content") else []
    calls: list[Json] = message.get("tool_calls") or []
    return said + [Message("call", call["function"]["name"], call["id"]) for call in calls]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks: list[Json] = content
    return "".join(block.get("text", "") for block in blocks)
