"""Conversion of ACP prompt blocks to model content.

Files, links and pictures become text notes or images. Linked resources are not read here: the model has tools
for that.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from handrail.own_agent.acp_requests import (
    AudioBlock,
    BlobResource,
    Block,
    ImageBlock,
    LinkBlock,
    ResourceBlock,
    TextBlock,
    TextResource,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import BinaryContent


IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Image types that all providers accept."""
TITLE_MAX = 80


def content_of(blocks: Sequence[Block], *, images: bool) -> list[str | BinaryContent]:
    """The content for the model. `images`: whether the model accepts images."""
    return [piece for block in blocks if (piece := _piece(block, images=images))]


def text_of(blocks: Sequence[Block]) -> str:
    """The typed text of the prompt."""
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()


def title_of(blocks: Sequence[Block]) -> str:
    """A title: the first line of the typed text, or a name for the attachment."""
    lines = [line.strip() for line in text_of(blocks).splitlines() if line.strip()]
    first = lines[0] if lines else next((_name(block) for block in blocks), "Nothing")
    return first if len(first) <= TITLE_MAX else f"{first[: TITLE_MAX - 1]}…"


def _piece(block: Block, *, images: bool) -> str | BinaryContent | None:
    match block:
        case TextBlock():
            return block.text if block.text.strip() else None
        case ImageBlock():
            return _image(block.data, block.mime_type, images=images)
        case AudioBlock():
            return f"[The person attached a recording ({block.mime_type}), which cannot be heard here.]"
        case LinkBlock():
            return f"[The person refers to {_place(block.uri)}: read it where you need it.]"
        case ResourceBlock():
            return _resource(block.resource, images=images)


def _resource(resource: TextResource | BlobResource, *, images: bool) -> str | BinaryContent:
    place = _place(resource.uri)
    if isinstance(resource, TextResource):
        return f"[The person attached {place}:]\n{resource.text}\n[End of {place}]"
    if resource.mime_type in IMAGES:
        return _image(resource.blob, resource.mime_type, images=images)
    return f"[The person attached {place} ({resource.mime_type or 'of unknown kind'}), which is no text.]"


def _image(data: str, kind: str, *, images: bool) -> str | BinaryContent:
    from pydantic_ai.messages import BinaryContent  # noqa: PLC0415 - slow import

    if not images:
        return f"[The person attached a picture ({kind}), but this model takes no pictures: say so.]"
    if kind not in IMAGES:
        return f"[The person attached a picture ({kind}) of a kind that no model takes: say so.]"
    try:
        return BinaryContent(base64.b64decode(data, validate=True), media_type=kind)
    except (binascii.Error, ValueError):
        return "[The person attached a picture that came damaged: say so.]"


def _name(block: Any) -> str:
    match block:
        case ImageBlock():
            return "A picture"
        case LinkBlock():
            return _place(block.uri)
        case ResourceBlock():
            return _place(block.resource.uri)
        case _:
            return "A prompt"


def _place(uri: str) -> str:
    """The path of a `file:` URI, with its line fragment if any; other URIs unchanged."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    return unquote(parts.path) + (f" ({parts.fragment})" if parts.fragment else "")
