"""What an MCP server answered, as the model and people are given it.

Owns the reading of content of every sort, and of our own server's words for how a call ended. It does not know how the
answer came.
"""

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Literal, cast

import mcp_types as types
from pydantic_ai.messages import BinaryContent

from handrail.agents.builtin.tools.tool import Json, Result

MOST_IMAGES = 10
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes that every provider takes."""
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take; an image of another sort makes them refuse the whole request."""
_LONGEST_VALUE = 4_000
"""Characters of one text in `raw`: people read the whole with the call, or from its text."""
_MOST_VALUES, _DEEPEST = 200, 6
_QUESTION = "asks the person a question in the middle of a call, which this agent cannot pass on; the call was not made"


def result_of(answer: types.CallToolResult | types.InputRequiredResult, *, server: str, ours: bool) -> Result:
    """`ours`: its structured content says how the call ended, in our own words."""
    if isinstance(answer, types.InputRequiredResult):
        return Result(text=f"The MCP server “{server}” {_QUESTION}.", failed=True, ended="failed")
    texts: list[str] = []
    images: list[BinaryContent] = []
    for piece in _pieces(answer):
        if isinstance(piece, str):
            texts.append(piece)
        elif len(images) < MOST_IMAGES:
            images.append(piece)
        else:
            texts.append("[one more image, which is left out]")
    failed, text = bool(answer.is_error), "\n".join(texts)
    raw = _fields(answer.structured_content)
    return Result(
        text=text if text.strip() else _nothing(failed, len(images)),
        images=tuple(images),
        failed=failed,
        ended=_ended(raw if ours else {}) if failed else "done",
        raw=slim(raw),
    )


def _fields(structured: object) -> Json:
    return cast("Json", structured) if isinstance(structured, dict) else {}


def _ended(raw: Json) -> Literal["failed", "denied", "cancelled"]:
    match raw.get("status"):
        case "denied" | "cancelled" as how:
            return how
        case _:
            return "failed"


def _pieces(answer: types.CallToolResult) -> Iterator[str | BinaryContent]:
    for block in answer.content:
        yield from _piece(block)
    if not answer.content and answer.structured_content is not None:
        yield json.dumps(answer.structured_content, ensure_ascii=False, indent=1)


def _piece(block: types.ContentBlock) -> Iterator[str | BinaryContent]:
    match block:
        case types.TextContent():
            if block.text:
                yield block.text
        case types.ImageContent():
            yield _image(block.data, block.mime_type)
        case types.AudioContent():
            yield f"[a sound of type {block.mime_type}, which cannot be heard here]"
        case types.ResourceLink():
            yield f"[{block.title or block.name}: {block.uri}]"
        case types.EmbeddedResource(resource=resource):
            if isinstance(resource, types.TextResourceContents):
                yield f"[{resource.uri}]\n{resource.text}"
            else:
                yield _image(resource.blob, resource.mime_type or "")


def _image(data: str, kind: str) -> BinaryContent | str:
    if kind not in _IMAGES:
        return f"[something of type {kind or 'unknown'}, which cannot be shown here]"
    if len(data) * 3 // 4 > LARGEST_IMAGE:
        return f"[an image of {len(data) * 3 // 4:,} bytes, which is too large]"
    try:
        return BinaryContent(b64decode(data, validate=True), media_type=kind)
    except (Error, ValueError):
        return "[an image that cannot be read]"


def _nothing(failed: bool, images: int) -> str:
    """Providers take no empty text."""
    if images:
        return "[an image]" if images == 1 else f"[{images} images]"
    return "It failed, and did not say why." if failed else "Done; it had nothing to say."


def slim(raw: Json) -> Json:
    """The same with long texts cut and long lists shortened, for people to look at."""
    return cast("Json", _slim(raw))


def _slim(value: object, depth: int = 0) -> object:
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"{value[:_LONGEST_VALUE]}… ({len(value):,} characters)"
    if isinstance(value, dict | list) and depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        items = list(cast("Json", value).items())[:_MOST_VALUES]
        return {name: _slim(each, depth + 1) for name, each in items}
    if isinstance(value, list):
        return [_slim(each, depth + 1) for each in cast("list[object]", value)[:_MOST_VALUES]]
    return value
