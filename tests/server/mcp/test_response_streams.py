"""Streams that can be resumed: what they keep of a server that says much, and when they end."""

from collections.abc import AsyncGenerator

import anyio
import pytest
from mcp_types import JSONRPCNotification, JSONRPCResponse

from handrail.server.mcp import _response_streams
from handrail.server.mcp._response_streams import EVENTS_BYTES, EVENTS_MAX, Exchange, SessionStreams

pytestmark = pytest.mark.anyio


def report(text: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": text})


ANSWER = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * 2 * EVENTS_BYTES})


async def read(body: AsyncGenerator[str]) -> list[str]:
    with anyio.fail_after(10):
        return [event async for event in body]


@pytest.mark.parametrize(("size", "kept"), [(1, EVENTS_MAX), (EVENTS_BYTES // 8, 7), (2 * EVENTS_BYTES, 1)])
async def test_a_server_that_reports_much_leaves_little_in_memory_and_its_answer_is_kept(
    size: int, kept: int
) -> None:
    streams, exchange = SessionStreams(), Exchange(anyio.Event())
    first = streams.open("1", exchange)
    exchange.lose()
    for _ in range(2 * EVENTS_MAX):
        streams.add("1", report("x" * size))
    stream, after = streams.find(first) or pytest.fail("the stream is open")
    assert len(stream.events) == kept

    last = streams.add("1", ANSWER)
    streams.add("1", report("too late"))
    came = await read(stream.resume(after))

    assert came[-1].startswith(f"id: {last}\n")
    assert "too late" not in "".join(came)
    assert stream.gone.is_set()
    assert not stream.events


async def test_an_answer_that_nobody_fetched_is_dropped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_response_streams, "RESUME_SECONDS", 0.05)
    streams, exchange = SessionStreams(), Exchange(anyio.Event())
    first = streams.open("1", exchange)
    stream, _ = streams.find(first) or pytest.fail("the stream is open")
    exchange.lose()
    streams.add("1", ANSWER)
    with anyio.fail_after(10):
        await exchange.gone.wait()

    assert not stream.events
    assert streams.find(first) is None


async def test_a_session_that_ends_ends_the_connections_that_resume_its_streams() -> None:
    streams, exchange = SessionStreams(), Exchange(anyio.Event())
    stream, after = streams.find(streams.open("1", exchange)) or pytest.fail("the stream is open")
    exchange.lose()
    body = stream.resume(after)
    streams.add("1", report("one"))
    assert "one" in await anext(body)
    streams.close()

    assert await read(body) == []
    assert exchange.gone.is_set()


@pytest.mark.parametrize("id", ["", "live", "1", "-", "1-", "2-0", "1-x", "\u0661-0", "9" * 99 + "-0"])
async def test_an_id_of_no_event_finds_no_stream(id: str) -> None:
    streams = SessionStreams()
    streams.open("1", Exchange(anyio.Event()))
    assert streams.find(id) is None
