"""Server-sent events and headers of MCP over HTTP."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from handrail.framing import LineTooLong
from handrail.upstream._argument_headers import TOOLS_MAX, ArgumentHeaders
from handrail.upstream.http_transport import EventParser, encode_header, plain_header

STREAM = (
    b": a comment\r\n\r\nevent: message\r\nid: 1\r\nretry: 250\r\ndata: {\r\ndata: }\r\n\r\n"
    b"id: 2\ndata:x\xe2\x80\xa8y\n\ndata: unfinished"
)


@pytest.mark.parametrize("size", [1, 7, len(STREAM)])
def test_events_are_read_whatever_the_chunks(size: int) -> None:
    parser = EventParser(1000)
    events = [event for at in range(0, len(STREAM), size) for event in parser.feed(STREAM[at : at + size])]
    assert [(event.data, event.id, event.retry) for event in events] == [
        (b"{\n}", "1", 0.25),
        (b"x\xe2\x80\xa8y", "2", None),
    ]
    assert parser.size == len(b"data: unfinished")


@pytest.mark.parametrize("piece", [b"x" * 10, b"data: x\n"])
def test_an_event_is_bounded(piece: bytes) -> None:
    parser = EventParser(100)
    with pytest.raises(LineTooLong):
        _ = [parser.feed(piece) for _ in range(200)]


@pytest.mark.parametrize(
    ("retry", "seconds"), [(b"1", 0.1), (b"99999999", 60.0), (b"soon", None), (b"9" * 5000, None)]
)
def test_a_server_cannot_have_its_stream_opened_again_too_soon_or_never(
    retry: bytes, seconds: float | None
) -> None:
    (event,) = EventParser(10_000).feed(b"retry: " + retry + b"\n\n")
    assert event.retry == seconds


def test_a_header_has_any_text() -> None:
    assert encode_header("tool name") == "tool name"
    for value in ("é", " x", "a\nb", "=?base64?eA==?="):
        assert base64.b64decode(encode_header(value)[9:-2]).decode() == value


@pytest.mark.parametrize("value", ["é", "a\nb", " x", "", "x" * 1001])
def test_what_no_header_can_have_is_not_sent_back(value: str) -> None:
    assert plain_header(value) == ""
    assert plain_header("1f-2") == "1f-2"


@pytest.mark.parametrize("token", ["é", "a b", "x\r\nAuthorization", "", 7])
def test_an_argument_is_sent_only_in_a_header_that_can_be(token: object) -> None:
    headers = ArgumentHeaders()
    _note(headers, {"t": token, "u": "Region"})

    assert headers.build("t", {"arguments": {"place": "here"}}) == {}
    assert headers.build("u", {"arguments": {"place": "a\r\nb"}}) == {
        "Mcp-Param-Region": "=?base64?YQ0KYg==?="
    }
    _note(headers, {str(number): "Region" for number in range(TOOLS_MAX)})
    assert headers.build("u", {"arguments": {"place": "here"}}) == {}


def _note(headers: ArgumentHeaders, wanted: Mapping[str, object]) -> None:
    def describe(token: object) -> Any:
        return {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": token}}}

    tools: Any = [{"name": name, "inputSchema": describe(token)} for name, token in wanted.items()]
    headers.note({"result": {"tools": tools}})
