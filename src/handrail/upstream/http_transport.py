"""A session with an MCP server over streamable HTTP, as a transport of lines.

Each message is a POST of its own; its answer is JSON, or a stream of server-sent events. In the generation of MCP 2025 a
server may also send messages on a GET stream, and a stream that broke is resumed. In 2026-07-28, closing the response
cancels the request. A request that gets no answer fails alone. It does not know the meaning of other messages.
"""

import base64
import json
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import field
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio.abc import TaskGroup

from handrail.framing import LineBuffer, LineTooLong
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.terminal.jsonrpc_messages import MESSAGE_MAX, encode_message, parse_message
from handrail.upstream._argument_headers import ArgumentHeaders
from handrail.upstream._http_errors import describe_http_error
from handrail.upstream.jsonrpc_connection import Undelivered

CONNECT_SECONDS = 10.0
SEND_SECONDS = 30.0
"""Time for a server to take a message. Its answer may take as long as the call's client waits."""
NOTICE_SECONDS = 15.0
"""Time for a server to acknowledge a notification."""
STOP_SECONDS = 2.0
"""Time for a server to end a session."""
EXCHANGES_MAX = 64
"""Requests of one session at a time; others wait."""
BUFFERED_MAX = 2 * MESSAGE_MAX
"""Bytes of unfinished answers of one session. Bounds memory."""
UNSENT_MAX = 2 * MESSAGE_MAX
REDIRECTS_MAX = 3
RESUMES_MAX = 5
"""Attempts to resume a stream that yield nothing new."""
HEADER_MAX = 1000
"""Characters of what a server wants to have sent back in a header."""
RETRY_FIRST, RETRY_MAX = 1.0, 60.0
"""Seconds before a stream is opened again."""
MODERN = "2026-07-28"
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods of 2026-07-28 whose header `Mcp-Name` has a parameter."""
_SAFE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
"""Text that a header can have as it is."""

_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)  # before a request is sent

Authorize = Callable[[str, str], Awaitable[Mapping[str, str]]]
"""The headers with which the server knows us. The arguments are empty, or the challenge (`WWW-Authenticate`) of a request that
was refused, and its `Authorization`. Raises Unauthorized."""


class Unauthorized(Exception):
    """The server does not accept who we are; the sentence says what to do."""


@dataclass()
class _Exchange:
    """A request and what came of it."""

    id: int | str
    line: bytes
    headers: dict[str, str]
    is_modern: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_sent: bool = False  # the server may have it
    is_answered: bool = False
    event_id: str = ""
    """The last event of its stream, from which it can be resumed."""
    retry: float = RETRY_FIRST


class HttpTransport:
    """One session."""

    def __init__(self, name: str, url: str, authorize: Authorize, client: httpx2.AsyncClient) -> None:
        """`client` is closed with the session."""
        self.name = name
        self.why: str | None = None
        """Why the session is over; the first reason wins."""
        self.over = anyio.Event()
        self._url, self._authorize, self._http = httpx2.URL(url), authorize, client
        self._outbox: list[bytes] = []
        self._has_unsent = anyio.Event()
        self._inbox, self._received = anyio.create_memory_object_stream[bytes | Undelivered](0)
        self._receiving = anyio.CancelScope()
        self._exchanges: dict[int | str, _Exchange] = {}
        self._limiter = anyio.Semaphore(EXCHANGES_MAX)
        self._unsent = self._buffered = 0
        self._session = self._version = ""
        self._argument_headers = ArgumentHeaders()
        self._group: TaskGroup | None = None

    @property
    def stderr_lines(self) -> tuple[str, ...]:
        """A server over HTTP has no standard error that we see."""
        return ()

    async def run(self) -> None:
        """Send what is queued, and receive, until cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            while True:
                await self._has_unsent.wait()
                self._has_unsent = anyio.Event()
                while self._outbox:
                    line = self._outbox.pop(0)
                    self._unsent -= len(line)
                    await self._dispatch(group, line)

    def send(self, line: bytes) -> None:
        """Queue a message."""
        if self._unsent + len(line) > UNSENT_MAX:
            self.give_up(f"{self.name} does not take what it is sent.")
        if self.why is None:
            self._outbox.append(line)
            self._unsent += len(line)
            self._has_unsent.set()

    async def receive(self) -> bytes | Undelivered | None:
        """The next message, or a request that will not be answered; None once the session is over."""
        if self.why is None:
            with anyio.CancelScope() as self._receiving:
                return await self._received.receive()
        return None

    def give_up(self, why: str) -> None:
        """Mark the session as over; the first reason wins."""
        if self.why is None:
            self.why = why
            self._receiving.cancel()
            self.over.set()

    async def stop(self) -> None:
        """End the session at the server, if it answers in time."""
        with anyio.CancelScope(shield=True):
            if self._session:
                with anyio.move_on_after(STOP_SECONDS):
                    await self._end_session()
            with anyio.move_on_after(STOP_SECONDS):
                await self._http.aclose()

    def close(self) -> None:
        """Nothing is left open after `stop`."""
        self._inbox.close()
        self._received.close()

    async def _end_session(self) -> None:
        try:
            async with self._open("DELETE", self._session_headers) as response:
                await response.aclose()
        except (httpx2.HTTPError, Unauthorized):
            return  # it ends there by itself

    # What we send.

    async def _dispatch(self, group: TaskGroup, line: bytes) -> None:
        message: Json = json.loads(line)
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        fields = params if isinstance(params, dict) else {}
        if method == "notifications/cancelled":
            self._cancel(group, line, fields.get("requestId"))
        elif isinstance(method, str) and isinstance(number, str | int):
            headers = self._request_headers(method, fields)
            exchange = _Exchange(number, line, headers, headers.get("mcp-protocol-version") == MODERN)
            self._exchanges[number] = exchange
            group.start_soon(self._run_exchange, exchange, method)
        elif method == "notifications/initialized":
            await self._post_notice(line)  # nothing overtakes it
            group.start_soon(self._listen)
        else:
            group.start_soon(self._post_notice, line)

    def _request_headers(self, method: str, params: Json) -> dict[str, str]:
        """What 2026-07-28 wants to see in headers, or the version that was agreed on in the handshake."""
        meta = params.get("_meta")
        version = meta.get(_META_VERSION) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return {} if method == "initialize" else self._session_headers
        headers = {"mcp-protocol-version": version, "mcp-method": method}
        name = params.get(_NAMED.get(method, ""))
        if not isinstance(name, str):
            return headers
        return {**headers, "mcp-name": encode_header(name), **self._argument_headers.build(name, params)}

    @property
    def _session_headers(self) -> dict[str, str]:
        version = {"mcp-protocol-version": self._version} if self._version else {}
        return {**version, **({"mcp-session-id": self._session} if self._session else {})}

    def _cancel(self, group: TaskGroup, line: bytes, id: object) -> None:
        exchange = self._exchanges.get(id) if isinstance(id, int | str) else None
        if exchange is not None and not exchange.is_modern:
            group.start_soon(self._post_notice, line)
        if exchange is not None:
            exchange.scope.cancel()  # in 2026-07-28, closing the response is the cancellation

    async def _post_notice(self, line: bytes) -> None:
        """Send a message that has no answer. One that is lost is lost, as on any network."""
        try:
            with anyio.move_on_after(NOTICE_SECONDS):
                async with self._open("POST", self._session_headers, line) as response:
                    if response.status_code == 404 and self._session:
                        self._note_lost_session()
        except (httpx2.HTTPError, Unauthorized):
            return

    def _note_lost_session(self) -> None:
        self.give_up(f"{self.name} does not know the session any more.")

    async def _run_exchange(self, exchange: _Exchange, method: str) -> None:
        why = ""
        try:
            with exchange.scope:
                async with self._limiter:
                    why = await self._exchange(exchange, method)
        finally:
            self._exchanges.pop(exchange.id, None)
        if why and not exchange.is_answered:
            await self._inbox.send(Undelivered(exchange.id, why, exchange.is_sent))

    async def _exchange(self, exchange: _Exchange, method: str) -> str:
        """Send a request and pass on what comes back; why there is no answer, or empty."""
        try:
            async with self._open("POST", exchange.headers, exchange.line, exchange) as response:
                if method == "initialize":
                    self._session = plain_header(response.headers.get("mcp-session-id", ""))
                why = await self._read_reply(response, exchange, method)
        except httpx2.HTTPError as problem:
            exchange.is_sent = exchange.is_sent or not isinstance(problem, _UNSENT)
            why = f"{self.name} could not be reached, or broke off: {describe_http_error(problem)}."
        except (Unauthorized, LineTooLong) as problem:
            return str(problem)
        if exchange.is_answered or not exchange.event_id or exchange.is_modern:
            return why
        return await self._resume(exchange, why)

    async def _resume(self, exchange: _Exchange, why: str) -> str:
        """Go on with a stream of MCP 2025 that ended before the answer."""
        attempts = 0
        while attempts < RESUMES_MAX and not exchange.is_answered:
            await anyio.sleep(exchange.retry)
            last = exchange.event_id
            try:
                async with self._open(
                    "GET", {**self._session_headers, "last-event-id": exchange.event_id}
                ) as response:
                    why = await self._read_reply(response, exchange, "")
            except httpx2.HTTPError as problem:
                why = f"{self.name} broke off: {describe_http_error(problem)}."
            except (Unauthorized, LineTooLong) as problem:
                return str(problem)
            attempts = 0 if exchange.event_id != last else attempts + 1
        return why

    @asynccontextmanager
    async def _open(
        self, method: str, headers: Mapping[str, str], line: bytes | None = None, of: _Exchange | None = None
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request, with a second attempt for a new sign-in, and with redirects inside of the origin."""
        accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
        known = {"accept": accept, "content-type": "application/json", "accept-encoding": "identity"}
        url, challenge, refused = self._url, "", ""
        for _ in range(REDIRECTS_MAX + 1):
            sent = {**await self._authorize(challenge, refused), **known, **headers}
            async with self._http.stream(method, url, headers=sent, content=line) as response:
                if of is not None:
                    of.is_sent = True
                target = find_redirect(response)
                is_refused = response.status_code == 401 and not challenge
                if target is None and not is_refused:
                    yield response
                    return
                url, refused = target or url, sent.get("Authorization", "")
                challenge = response.headers.get("www-authenticate", "Bearer") if is_refused else challenge
        raise httpx2.TooManyRedirects(f"more than {REDIRECTS_MAX} redirects")

    # What comes back.

    async def _read_reply(self, response: httpx2.Response, exchange: _Exchange, method: str) -> str:
        """Pass on the messages in a response; why it has no answer, or empty."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 404 and self._session and not exchange.is_modern:
            self._note_lost_session()
        elif kind == "application/json":
            reply = parse_message(await self._read_body(response)) or {}
            if "error" in reply or ("result" in reply and response.is_success):
                # A server that did not read the request does not know its id.
                reply = {**reply, "id": exchange.id} if "error" in reply else reply
                await self._pass_on(exchange, reply, encode_message(reply), method)
                return ""
        elif kind == "text/event-stream" and response.is_success:
            return await self._read_events(response, exchange, method)
        return self._describe_refusal(response, kind)

    async def _read_events(self, response: httpx2.Response, exchange: _Exchange, method: str) -> str:
        async with aclosing(self._events(response)) as events:
            async for event in events:
                exchange.event_id = event.id or exchange.event_id
                exchange.retry = event.retry or exchange.retry
                if event.data:
                    await self._pass_on(exchange, parse_message(event.data) or {}, event.data, method)
                if exchange.is_answered:
                    return ""
        return f"{self.name} ended the response before the answer."

    def _describe_refusal(self, response: httpx2.Response, kind: str) -> str:
        status = response.status_code
        if response.has_redirect_location:
            target = urlsplit(response.headers["location"])
            where = f"{target.scheme}://{target.netloc}{target.path}" if target.netloc else target.path
            return f"{self.name} redirects to {where[:200]}, which is not followed. Put that address into its `url`."
        if status in (401, 403):
            return f"{self.name} refuses access (HTTP {status})."
        if response.is_success:
            return f"{self.name} answered with {kind or 'nothing'} instead of a message (HTTP {status})."
        return f"{self.name} answered with HTTP {status}."

    async def _pass_on(self, exchange: _Exchange, message: Json, line: bytes, method: str) -> None:
        if "method" not in message and message.get("id") == exchange.id:
            if method == "initialize":
                result = message.get("result")
                self._version = plain_header(
                    str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""
                )
            elif method == "tools/list" and b"x-mcp-header" in line:
                self._argument_headers.note(message)
            exchange.is_answered = True
        await self._inbox.send(line)

    async def _listen(self) -> None:
        """Receive the messages that belong to no request, if the server has a stream for them."""
        last, retry = "", RETRY_FIRST
        while self.why is None:
            got = False
            headers = {**self._session_headers, **({"last-event-id": last} if last else {})}
            try:
                async with self._open("GET", headers) as response:
                    if response.status_code == 404 and self._session and last:
                        self._note_lost_session()
                    if not response.is_success or "text/event-stream" not in response.headers.get(
                        "content-type", ""
                    ):
                        return
                    async with aclosing(self._events(response)) as events:
                        async for event in events:
                            got, last, retry = True, event.id or last, event.retry or RETRY_FIRST
                            if event.data:
                                await self._inbox.send(event.data)
            except (Unauthorized, LineTooLong):
                return
            except httpx2.HTTPError:
                got = False
            await anyio.sleep(retry)
            retry = retry if got else min(RETRY_MAX, 2 * retry)

    async def _read_body(self, response: httpx2.Response) -> bytes:
        """The body. Raises LineTooLong."""
        body = bytearray()
        try:
            async for chunk in response.aiter_raw():
                self._hold(len(chunk))
                body += chunk
                if len(body) > MESSAGE_MAX:
                    raise self._too_long()
        finally:
            self._buffered -= len(body)
        return bytes(body)

    async def _events(self, response: httpx2.Response) -> AsyncGenerator["Event"]:
        """The events of a stream. Raises LineTooLong."""
        parser, held = EventParser(MESSAGE_MAX), 0
        try:
            async for chunk in response.aiter_raw():
                try:
                    events = parser.feed(chunk)
                except LineTooLong:
                    raise self._too_long() from None
                self._hold(parser.size - held)
                held = parser.size
                for event in events:
                    yield event
        finally:
            self._buffered -= held

    def _hold(self, size: int) -> None:
        self._buffered += size
        if self._buffered > BUFFERED_MAX:
            self.give_up(f"{self.name} sent more than {BUFFERED_MAX >> 20} MiB of unfinished answers.")

    def _too_long(self) -> LineTooLong:
        return LineTooLong(f"{self.name} sent a message of more than {MESSAGE_MAX >> 20} MiB.")


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event."""

    data: bytes
    id: str
    retry: float | None
    """Seconds to wait before the stream is opened again."""


class EventParser:
    """Splits a stream into events, and holds at most one unfinished event."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines = LineBuffer(limit)
        self._data: list[bytes] = []
        self._id, self._retry = "", ""
        self._pending = 0
        self.size = 0
        """Bytes that are held."""

    def feed(self, data: bytes) -> list[Event]:
        """The events that end in this data. Raises LineTooLong."""
        lines = self._lines.feed(data)
        self._pending = len(data) - data.rfind(b"\n") - 1 if b"\n" in data else self._pending + len(data)
        found = [event for line in lines if (event := self._take(line.removesuffix(b"\r")))]
        self.size = self._pending + sum(map(len, self._data))
        if self.size > self._limit:
            raise LineTooLong("An event is too long.")
        return found

    def _take(self, line: bytes) -> Event | None:
        if not line:
            return self._finish()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"id" if b"\0" not in value:
                self._id = plain_header(value.decode(errors="replace"))
            case b"retry":
                self._retry = value.decode(errors="replace")
            case _:  # a comment, or the name of the event: all are messages
                return None
        return None

    def _finish(self) -> Event | None:
        if not self._data and not self._id and not self._retry:
            return None
        is_number = self._retry.isascii() and self._retry.isdigit() and len(self._retry) < 10
        retry = min(RETRY_MAX, max(0.1, int(self._retry) / 1000)) if is_number else None
        event = Event(b"\n".join(self._data), self._id, retry)
        self._data, self._id, self._retry = [], "", ""
        return event


def build_client(tls: ssl.SSLContext, *, is_local: bool) -> httpx2.AsyncClient:
    """An HTTP client. A server on this machine is reached without a proxy."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=4, keepalive_expiry=60)
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS, write=SEND_SECONDS)
    if is_local:
        transport = httpx2.AsyncHTTPTransport(
            verify=tls, trust_env=False, limits=limits, socket_options=options
        )
        return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False)
    return httpx2.AsyncClient(verify=tls, limits=limits, timeout=timeout)


def find_redirect(response: httpx2.Response) -> httpx2.URL | None:
    """Where a response redirects to, if that may be followed: the same request, at the same origin."""
    if response.status_code not in (307, 308) or response.next_request is None:
        return None
    old, new = response.request.url, response.next_request.url
    same = (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port)
    return new if same and not new.userinfo else None


def plain_header(value: str) -> str:
    """What a server wants to have sent back in a header, if a header can have it; else empty."""
    return value if len(value) <= HEADER_MAX and _SAFE.fullmatch(value) else ""


def encode_header(value: str) -> str:
    """A header's value, in the encoding of MCP for what a header cannot have."""
    if _SAFE.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
