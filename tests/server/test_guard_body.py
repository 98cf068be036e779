"""A request's body is heard up to a bound, and no further, however it is sent."""

from dataclasses import dataclass, field

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from handrail.server.guard import MOST_BYTES, SIGN_IN_BYTES, BodyLimit

pytestmark = pytest.mark.anyio

MEGABYTE = b"x" * 1024 * 1024


@dataclass
class Line:
    """One request on its way to an application that reads all of it."""

    path: str = "/api/sign-in"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    chunks: list[bytes] = field(default_factory=list[bytes])
    taken: int = 0
    heard: int = -1
    said: list[Message] = field(default_factory=list[Message])

    async def run(self) -> int:
        """The status of the answer."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        scope: Scope = {"type": "http", "method": "POST", "path": self.path, "headers": headers}
        await BodyLimit(self.application)(scope, self.receive, self.send)
        return self.said[0]["status"]

    async def application(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.heard = len(await Request(scope, receive).body())
        await PlainTextResponse("heard")(scope, receive, send)

    async def receive(self) -> Message:
        chunk = self.chunks[self.taken]
        self.taken += 1
        return {"type": "http.request", "body": chunk, "more_body": self.taken < len(self.chunks)}

    async def send(self, message: Message) -> None:
        self.said.append(message)


async def test_a_body_within_the_bound_is_heard_whole() -> None:
    line = Line(chunks=[b"x" * SIGN_IN_BYTES], headers={"content-length": str(SIGN_IN_BYTES)})
    assert (await line.run(), line.heard) == (200, SIGN_IN_BYTES)


async def test_a_body_that_is_announced_as_too_long_is_not_heard_at_all() -> None:
    line = Line(chunks=[MEGABYTE], headers={"content-length": str(SIGN_IN_BYTES + 1)})
    assert (await line.run(), line.heard, line.taken) == (413, -1, 0)


async def test_a_body_that_grows_too_long_is_given_up_where_it_does() -> None:
    line = Line(chunks=[b"x" * SIGN_IN_BYTES, b"x", b"x"])
    assert (await line.run(), line.heard, line.taken) == (413, -1, 2)


async def test_a_length_that_is_a_lie_does_not_help() -> None:
    line = Line(chunks=[MEGABYTE], headers={"content-length": "10"})
    assert (await line.run(), line.heard) == (413, -1)


@pytest.mark.parametrize("length", ["", "-1", "x", "1e9", "\u0663"])
async def test_a_length_that_is_no_number_is_as_good_as_none(length: str) -> None:
    line = Line(chunks=[b"short"], headers={"content-length": length})
    assert (await line.run(), line.heard) == (200, 5)


async def test_elsewhere_more_may_be_said_but_not_without_end() -> None:
    fits = [MEGABYTE] * (MOST_BYTES // len(MEGABYTE))
    line = Line(path="/mcp", chunks=fits)
    assert (await line.run(), line.heard) == (200, MOST_BYTES)
    line = Line(path="/mcp", chunks=[*fits, b"x", b"x"])
    assert (await line.run(), line.heard) == (413, -1)


async def test_what_breaks_in_the_application_is_not_hidden() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a fault")

    line = Line(chunks=[b""])
    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
    with pytest.raises(ValueError, match="a fault"):
        await BodyLimit(broken)(scope, line.receive, line.send)


async def test_a_socket_is_none_of_its_business() -> None:
    seen: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    line = Line()
    await BodyLimit(application)({"type": "websocket", "path": "/api/live"}, line.receive, line.send)
    assert seen == ["websocket"]
