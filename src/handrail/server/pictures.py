"""Pictures, as people send and look at them.

Owns what counts as one: what the bytes say, never what somebody says of them. It does not know where they are kept.
"""

import base64
import binascii

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class NoPicture(Exception):
    """What was sent as a picture is none."""

    def __init__(self, place: int) -> None:
        self.place = place
        super().__init__(f"Picture {place} is no PNG, JPEG, GIF or WebP in Base64.")


def mime_of(content: bytes) -> str | None:
    """What kind of picture it is; None when it is none that a page shows."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for begin, mime in _BEGINNINGS.items() if content.startswith(begin)), None)


def picture(data: str, place: int) -> tuple[bytes, str]:
    """The bytes of a picture in Base64, and what kind it is. Raises NoPicture, which names its `place`."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise NoPicture(place) from None
    mime = mime_of(content)
    if mime is None:
        raise NoPicture(place)
    return content, mime
