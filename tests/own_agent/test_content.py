import base64
from typing import Any

from pydantic_ai.messages import BinaryContent

from handrail.own_agent.acp_requests import PromptRequest
from handrail.own_agent.content import content_of, text_of, title_of

PNG = base64.b64encode(b"\x89PNG").decode()


def blocks(*given: dict[str, Any]) -> list[Any]:
    return list(PromptRequest.model_validate({"sessionId": "s", "prompt": list(given)}).prompt)


def test_text_is_given_as_it_is_and_blanks_are_left_out() -> None:
    given = blocks({"type": "text", "text": "Hello"}, {"type": "text", "text": " \n"})
    assert content_of(given, images=True) == ["Hello"]


def test_a_picture_is_given_to_a_model_that_takes_pictures() -> None:
    given = blocks({"type": "image", "data": PNG, "mimeType": "image/png"})
    assert content_of(given, images=True) == [BinaryContent(b"\x89PNG", media_type="image/png")]


def test_a_picture_that_cannot_be_given_is_spoken_of() -> None:
    given = blocks(
        {"type": "image", "data": PNG, "mimeType": "image/tiff"},
        {"type": "image", "data": "§", "mimeType": "image/png"},
        {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
    )
    told = content_of(given, images=True)
    assert ["image/tiff" in str(told[0]), "damaged" in str(told[1]), "audio/wav" in str(told[2])] == [
        True
    ] * 3
    assert "takes no pictures" in str(content_of(given[:1], images=False)[0])


def test_a_file_is_given_with_its_path_and_a_link_as_a_path_to_read() -> None:
    given = blocks(
        {"type": "resource", "resource": {"uri": "file:///a/b%20c.py", "text": "x = 1"}},
        {"type": "resource_link", "uri": "file:///a/d.py#L3", "name": "d"},
        {"type": "resource_link", "uri": "https://example.org/page", "name": "page"},
    )
    file, link, page = map(str, content_of(given, images=True))
    assert file.startswith("[The person attached /a/b c.py:]\nx = 1\n")
    assert "/a/d.py (L3)" in link
    assert "https://example.org/page" in page


def test_a_picture_may_come_as_a_file() -> None:
    given = blocks(
        {"type": "resource", "resource": {"uri": "file:///a.png", "blob": PNG, "mimeType": "image/png"}},
        {
            "type": "resource",
            "resource": {"uri": "file:///a.zip", "blob": PNG, "mimeType": "application/zip"},
        },
    )
    picture, archive = content_of(given, images=True)
    assert isinstance(picture, BinaryContent)
    assert "/a.zip (application/zip)" in str(archive)


def test_the_title_is_the_first_line_that_was_typed() -> None:
    assert title_of(blocks({"type": "text", "text": "\n  Mend it \nplease"})) == "Mend it"
    assert title_of(blocks({"type": "text", "text": "x" * 200})) == "x" * 79 + "…"
    assert title_of(blocks({"type": "image", "data": PNG, "mimeType": "image/png"})) == "A picture"
    assert text_of(blocks({"type": "text", "text": "a"}, {"type": "text", "text": "b"})) == "a\nb"
