"""What counts as a picture is in its bytes."""

import base64

import pytest

from handrail.server.api.prompts import BadImage, decode_image
from handrail.store.blobs import image_mime

PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"<script>", None),
        (b"", None),
    ],
)
def test_a_picture_is_known_by_how_it_begins(content: bytes, mime: str | None) -> None:
    assert image_mime(content) == mime


def test_a_picture_comes_out_of_base64_as_it_was() -> None:
    assert decode_image(base64.b64encode(PNG).decode(), 1) == (PNG, "image/png")


@pytest.mark.parametrize("data", ["%%%", "not base64", base64.b64encode(b"<script>").decode(), "", "ÄÖÜ"])
def test_what_is_none_is_named_by_its_place(data: str) -> None:
    with pytest.raises(BadImage, match="Picture 3"):
        decode_image(data, 3)
