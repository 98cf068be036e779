"""What a person says, as an agent is sent it: pieces of a prompt become content blocks.

Owns that translation, and what is said when an agent cannot take a piece. It does not know where pictures are kept.
"""

import base64
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from handrail.agents.loose import text
from handrail.agents.program.about import About
from handrail.store.thread.message import Message
from handrail.store.value import Json, PartKind

Look = Callable[[str], Awaitable[bytes | None]]
"""The picture of a hash; None when it is no longer kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a prompt: text, a file it points to, or a picture that is kept by its hash (store/part.py)."""

    kind: PartKind
    text: str = ""
    data: Json = field(default_factory=dict[str, JsonValue])


def pieces_of(message: Message) -> tuple[Piece, ...]:
    """What a message was made of."""
    return tuple(Piece(kind=part.kind, text=part.text, data=part.data) for part in message.parts)


def first_line(pieces: Iterable[Piece]) -> str:
    """What a prompt begins with; empty when it says nothing."""
    lines = [line.strip() for piece in pieces if piece.kind == "text" for line in piece.text.splitlines()]
    return next(filter(None, lines), "")


async def blocks_of(pieces: Iterable[Piece], about: About, look: Look) -> tuple[list[Json], list[str]]:
    """The blocks, and a sentence for each piece that was left out."""
    blocks: list[Json] = []
    unsent: list[str] = []
    for piece in pieces:
        match piece.kind:
            case "file":
                uri = text(piece.data.get("uri"))
                blocks.append(
                    {"type": "resource_link", "uri": uri, "name": text(piece.data.get("name")) or uri}
                )
            case "image" if not about.takes_images:
                unsent.append(f"{about.name} takes no pictures, so it was not sent the one above.")
            case "image":
                content = await look(text(piece.data.get("image")))
                if content is None:
                    unsent.append("A picture above is no longer kept, so it was not sent.")
                else:
                    mime = text(piece.data.get("mime")) or "image/png"
                    data = base64.b64encode(content).decode()
                    blocks.append({"type": "image", "mimeType": mime, "data": data})
            case _:
                blocks.append({"type": "text", "text": piece.text})
    return blocks, unsent
