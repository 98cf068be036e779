"""Sign-ins of a person to MCP servers over HTTP, with OAuth: the way through the browser, and the tokens that come of it.

Tokens are in the secret store, belong to the address of one server, and go to that server and its authorization server
only. The browser begins at a listener on loopback, which sends it on to the authorization server, and comes back to it. So
no program is started with the `state` of a sign-in in its arguments, where every process can read it.
"""

import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, field
from html import escape
from http import HTTPStatus
from typing import Literal, cast
from urllib.parse import parse_qs, quote

import anyio
import httpx2
from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream, TaskGroup, TaskStatus

from handrail.config import McpServerSection
from handrail.lazy_dataclass import dataclass
from handrail.provider_keys import NoKeyring
from handrail.upstream.http_transport import Unauthorized
from handrail.upstream.oauth_client import (
    AuthorizationRequest,
    AuthorizationServer,
    ClientId,
    InvalidGrant,
    OAuthClient,
    OAuthError,
    Tokens,
)
from handrail.upstream.secret_store import BadSecret, SecretStore, fill_references, find_references

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
SIGN_IN_SECONDS = 600.0
"""Time for a person to sign in. Bounds how long the listener is there."""
REQUEST_MAX = 16_384
"""Bytes of the browser's request."""
REQUEST_SECONDS = 5.0
RENEW_SECONDS = 30.0
"""A token is renewed so long before it expires."""
ACCEPTED_MAX = 16
"""Connections of browsers at a time."""

Address = tuple[str, int]
RefusalOfPeer = Callable[[Address, Address], str | None]
"""Why the process at the client's end of a connection may not take part in a sign-in; None if it may. Blocks."""
SignInState = Literal["none", "needed", "pending", "done"]
"""Nobody asked for one; the server wants one; a person is at it; there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTokens:
    """A sign-in as it is stored."""

    url: str
    """The server's address. Tokens of another address are not used."""
    resource: str
    token_endpoint: str
    client_id: str
    client_secret: str
    access: str
    refresh: str
    expires: float
    """Unix time; 0 if unknown."""


@dataclass(eq=False)
class _SignIn:
    """The sign-in to one server."""

    section: McpServerSection
    tokens: StoredTokens | None = None
    is_loaded: bool = False
    challenge: str = ""
    """With which the server asked for a sign-in."""
    problem: str = ""
    pending: anyio.CancelScope | None = None
    lock: anyio.Lock = field(default_factory=anyio.Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A sign-in under way."""

    client: OAuthClient
    server: AuthorizationServer
    id: ClientId
    request: AuthorizationRequest
    refuse: RefusalOfPeer
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Begins the sign-in in a browser, and does not end it."""


class OAuthSignIns:
    """The sign-ins to all servers over HTTP."""

    def __init__(
        self,
        sections: Mapping[str, McpServerSection],
        store: SecretStore,
        connect: Callable[[str], Awaitable[httpx2.AsyncClient]],
        group: Callable[[], TaskGroup | None],
        on_change: Callable[[], None],
    ) -> None:
        """`connect` makes an HTTP client for an address. Sign-ins go on in `group`. `on_change` is called after one."""
        self._store, self._connect, self._group, self._on_change = store, connect, group, on_change
        self._sections = sections
        self._sign_ins: dict[str, _SignIn] = {}

    def __contains__(self, name: str) -> bool:
        """Whether this is a server over HTTP."""
        return name in self._sections and bool(self._sections[name].url)

    async def states(self) -> dict[str, tuple[SignInState, str]]:
        """The state of the sign-in to each server, and why the last attempt failed."""
        return {name: await self._state(name) for name in sorted(self._sections) if name in self}

    async def _state(self, name: str) -> tuple[SignInState, str]:
        sign_in = await self._load(name)
        if sign_in.pending is not None:
            return "pending", sign_in.problem
        if sign_in.tokens is not None:
            return "done", ""
        return "needed" if sign_in.challenge else "none", sign_in.problem

    async def headers(self, name: str, challenge: str, refused: str) -> Mapping[str, str]:
        """The `Authorization` for a server, renewed if needed; none if it did not ask for one. Raises Unauthorized."""
        if name not in self:  # a person removed it, and its session ends
            raise Unauthorized(f"{name} was removed.")
        sign_in = await self._load(name)
        async with sign_in.lock:
            tokens = sign_in.tokens
            if tokens is None and not challenge:
                return {}
            if tokens is None:
                sign_in.challenge = challenge
                raise Unauthorized(ask_for_sign_in(name))
            is_refused = bool(challenge) and refused == f"Bearer {tokens.access}"
            if is_refused or (tokens.expires and tokens.expires - time.time() < RENEW_SECONDS):
                tokens = await self._renew(sign_in, tokens, challenge)
            return {"Authorization": f"Bearer {tokens.access}"}

    async def _renew(self, sign_in: _SignIn, tokens: StoredTokens, challenge: str) -> StoredTokens:
        name = sign_in.section.name
        known = ClientId(id=tokens.client_id, secret=tokens.client_secret)
        try:
            async with await self._connect(sign_in.section.url) as http:
                client = OAuthClient(name, sign_in.section.url, http)
                fresh = await client.refresh(tokens.token_endpoint, known, tokens.resource, tokens.refresh)
        except InvalidGrant:
            await self._keep(sign_in, None)
            sign_in.challenge = challenge or "Bearer"
            raise Unauthorized(ask_for_sign_in(name)) from None
        except OAuthError as problem:
            raise Unauthorized(f"The sign-in to {name} could not be renewed. {problem}") from None
        renewed = _stored(sign_in.section, tokens.resource, tokens.token_endpoint, known, fresh)
        await self._keep(sign_in, renewed)
        return renewed

    async def begin(self, name: str, refuse: RefusalOfPeer) -> str:
        """Begin a sign-in; the link for the person's browser. An earlier one that is under way ends. Raises OAuthError.

        `refuse` is asked about each process that uses the link, or says that it comes back.
        """
        group = self._group()
        if group is None:
            raise OAuthError("Handrail is just starting, or ending.")
        sign_in = await self._load(name)
        if sign_in.pending is not None:
            sign_in.pending.cancel()
        return await group.start(self._sign_in, sign_in, refuse)

    async def forget(self, name: str) -> bool:
        """Delete the tokens; whether there were any."""
        sign_in = await self._load(name)
        if sign_in.pending is not None:
            sign_in.pending.cancel()
        async with sign_in.lock:
            had_tokens = sign_in.tokens is not None
            await self._keep(sign_in, None)
        return had_tokens

    async def _sign_in(
        self, sign_in: _SignIn, refuse: RefusalOfPeer, *, task_status: TaskStatus[str]
    ) -> None:
        section, is_told = sign_in.section, False
        with anyio.move_on_after(SIGN_IN_SECONDS) as scope:
            sign_in.pending, sign_in.problem = scope, ""
            try:
                async with await self._connect(section.url) as http:
                    listener = await _listen(section)
                    async with listener:
                        origin = f"http://{HOST}:{listener.extra(SocketAttribute.local_port)}"
                        attempt = await self._prepare(sign_in, http, f"{origin}{_BACK}", refuse)
                        task_status.started(f"{origin}{_BEGIN}?ticket={attempt.ticket}")
                        is_told = True
                        await self._wait_for_browser(listener, sign_in, attempt)
            except OAuthError as problem:
                sign_in.problem = str(problem)
                if not is_told:
                    raise
            except Exception:
                log.exception("the sign-in to %s failed", section.name)
                sign_in.problem = "This is a fault in Handrail; its log has the details."
                if not is_told:
                    raise OAuthError(sign_in.problem) from None
            finally:
                if sign_in.pending is scope:
                    sign_in.pending = None
        if not is_told:
            raise OAuthError("Another sign-in took the place of this one.")
        if scope.cancelled_caught and anyio.current_time() >= scope.deadline:
            sign_in.problem = "Nobody signed in in time."

    async def _prepare(
        self, sign_in: _SignIn, http: httpx2.AsyncClient, redirect_uri: str, refuse: RefusalOfPeer
    ) -> _Attempt:
        section = sign_in.section
        client = OAuthClient(section.name, section.url, http)
        server = await client.discover(sign_in.challenge or await _probe(http, section.url))
        known = await self._find_client_id(section)
        known = known or await client.register(server, redirect_uri)
        request = client.build_request(server, known, redirect_uri, section.oauth.scope or server.scope)
        return _Attempt(client=client, server=server, id=known, request=request, refuse=refuse)

    async def _find_client_id(self, section: McpServerSection) -> ClientId | None:
        """The client id of the configuration. Raises OAuthError."""
        if not section.oauth.client_id:
            return None
        names = find_references([section.oauth.client_secret])
        try:
            found = await to_thread.run_sync(lambda: self._store.get(*names), abandon_on_cancel=True)
            secret = fill_references(section.oauth.client_secret, found)
        except (BadSecret, KeyError) as problem:
            raise OAuthError(f"The client secret of {section.name} is not stored: {problem}.") from None
        return ClientId(id=section.oauth.client_id, secret=secret)

    async def _wait_for_browser(
        self, listener: anyio.abc.Listener[SocketStream], sign_in: _SignIn, attempt: _Attempt
    ) -> None:
        """Answer browsers until one brings the code of this attempt. Raises OAuthError."""
        failures: list[OAuthError] = []
        limiter = anyio.Semaphore(ACCEPTED_MAX)
        async with anyio.create_task_group() as group:

            async def answer(stream: SocketStream) -> None:
                async with limiter, stream:
                    path, query = await _read_request(stream)
                    is_begin = path == _BEGIN and _is_same(query, "ticket", attempt.ticket)
                    if not is_begin and not (
                        path == _BACK and _is_same(query, "state", attempt.request.state)
                    ):
                        await _reply(stream, 400, "This is not the sign-in that Handrail waits for.")
                        return
                    refusal = await _find_refusal(stream, attempt.refuse)
                    if refusal is not None:
                        await _reply(stream, 403, refusal)
                        return
                    if is_begin:
                        await _reply(stream, 302, "", location=attempt.request.url)
                        return
                    try:
                        await self._finish(sign_in, attempt, query)
                        await _reply(stream, 200, f"You are signed in to {sign_in.section.name}.")
                    except OAuthError as problem:
                        failures.append(problem)
                        await _reply(stream, 400, str(problem))
                    group.cancel_scope.cancel()

            await listener.serve(answer, group)
        if failures:
            raise failures[0]

    async def _finish(self, sign_in: _SignIn, attempt: _Attempt, query: Mapping[str, str]) -> None:
        """Get the tokens for what the browser brought. Raises OAuthError."""
        server = attempt.server
        if query.get("iss", server.issuer if not server.names_issuer else "") != server.issuer:
            raise OAuthError("The answer comes from another authorization server, so nobody is signed in.")
        if "error" in query or not query.get("code"):
            why = ": ".join(filter(None, (query.get("error", "no code"), query.get("error_description", ""))))
            raise OAuthError(f"The authorization server of {sign_in.section.name} says: {why[:300]}.")
        tokens = await attempt.client.redeem(server, attempt.id, attempt.request, query["code"])
        stored = _stored(sign_in.section, server.resource, server.token_endpoint, attempt.id, tokens)
        async with sign_in.lock:
            await self._keep(sign_in, stored)
        sign_in.challenge = ""
        self._on_change()

    async def _load(self, name: str) -> _SignIn:
        """The sign-in to a server, with the stored tokens if they are for its address."""
        section = self._sections[name]
        sign_in = self._sign_ins.get(name)
        if sign_in is None or sign_in.section is not section:
            sign_in = self._sign_ins[name] = _SignIn(section)
        async with sign_in.lock:
            if not sign_in.is_loaded:
                secret = _secret_name(section)
                try:
                    found = await to_thread.run_sync(lambda: self._store.get(secret), abandon_on_cancel=True)
                    tokens = StoredTokens(**json.loads(found[secret])) if secret in found else None
                except (BadSecret, ValueError, TypeError) as problem:
                    log.warning("the sign-in to %s cannot be read: %s", section.name, problem)
                    tokens = None
                sign_in.tokens = tokens if tokens is not None and tokens.url == section.url else None
                sign_in.is_loaded = True
                self._hide(sign_in.tokens)
        return sign_in

    async def _keep(self, sign_in: _SignIn, tokens: StoredTokens | None) -> None:
        """Use these tokens from now on, and store them. If that fails, they are used until Handrail ends."""
        sign_in.tokens = tokens
        self._hide(tokens)
        name = _secret_name(sign_in.section)
        value = "" if tokens is None else json.dumps(asdict(tokens))

        def store() -> None:
            if tokens is None:
                self._store.delete(name)
            else:
                self._store.set(name, value)

        try:
            await to_thread.run_sync(store, abandon_on_cancel=True)
        except (NoKeyring, BadSecret) as problem:
            log.warning("the sign-in to %s could not be stored: %s", sign_in.section.name, problem)

    def _hide(self, tokens: StoredTokens | None) -> None:
        if tokens is not None:
            self._store.hide(tokens.access, tokens.refresh, tokens.client_secret)


def ask_for_sign_in(name: str) -> str:
    """What an agent reads when a server wants a sign-in."""
    return (
        f"{name} needs sign-in. Ask the person to run `handrail servers login {name}`, or to sign in on Handrail's page; "
        "then call the tool again."
    )


def _secret_name(section: McpServerSection) -> str:
    return f"oauth:{section.name}"


def _stored(
    section: McpServerSection, resource: str, endpoint: str, client: ClientId, tokens: Tokens
) -> StoredTokens:
    return StoredTokens(
        url=section.url,
        resource=resource,
        token_endpoint=endpoint,
        client_id=client.id,
        client_secret=client.secret,
        access=tokens.access,
        refresh=tokens.refresh,
        expires=0.0 if tokens.lifetime is None else time.time() + tokens.lifetime,
    )


async def _probe(http: httpx2.AsyncClient, url: str) -> str:
    """The challenge of a server that was never asked; empty if it has none."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"accept": "application/json, text/event-stream"}
    try:
        with anyio.fail_after(REQUEST_SECONDS):
            async with http.stream("POST", url, json=ping, headers=headers) as response:
                return response.headers.get("www-authenticate", "")
    except (httpx2.HTTPError, TimeoutError):
        return ""


async def _listen(section: McpServerSection) -> anyio.abc.Listener[SocketStream]:
    port = section.oauth.redirect_port
    try:
        multi = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
    except OSError as problem:
        raise OAuthError(
            f"Port {port} for the sign-in to {section.name} cannot be used: {problem}."
        ) from None
    return multi.listeners[0]


_BEGIN, _BACK = "/begin", "/callback"


def _is_same(query: Mapping[str, str], name: str, value: str) -> bool:
    return secrets.compare_digest(query.get(name, "").encode(), value.encode())


async def _find_refusal(stream: SocketStream, refuse: RefusalOfPeer) -> str | None:
    client = cast("Address", stream.extra(SocketAttribute.remote_address))
    server = cast("Address", stream.extra(SocketAttribute.local_address))
    return await to_thread.run_sync(refuse, client, server, abandon_on_cancel=True)


async def _read_request(stream: SocketStream) -> tuple[str, dict[str, str]]:
    """The path and the query of a browser's request; an empty path if it is not one."""
    data = b""
    try:
        with anyio.fail_after(REQUEST_SECONDS):
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
                if len(data) > REQUEST_MAX:
                    return "", {}
    except (TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError):
        return "", {}
    words = data.split(b"\r\n", 1)[0].decode("ascii", errors="replace").split(" ")
    path, _, query = words[1].partition("?") if len(words) == 3 and words[0] == "GET" else ("", "", "")
    return path, {name: values[0] for name, values in parse_qs(query).items()}


def _build_location(url: str) -> str:
    """The header of a redirect; the address comes in part from the authorization server's own description."""
    return f"location: {quote(url, safe=_KEPT)}\r\n" if url else ""


_KEPT = "%:/?#[]@!$&'()*+,;=~"


async def _reply(stream: SocketStream, status: int, words: str, location: str = "") -> None:
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Handrail</title>"
        f"<body style='font: 16px system-ui; margin: 4rem'><p>{escape(words)}</p><p>You can close this page.</p>"
    ).encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"{_build_location(location)}"
        f"content-length: {len(page)}\r\nconnection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n"
    )
    with anyio.move_on_after(REQUEST_SECONDS):
        try:
            await stream.send(head.encode() + page)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
