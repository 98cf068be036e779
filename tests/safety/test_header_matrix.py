"""The header matrix: every route and socket of the real table, against every way a request can be foreign.

The guard stands before a recorder here, in the place of the application: what the recorder has not seen has reached
no handler. The same guard before the real application, over real sockets, is in test_wire.py.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.support.route_table import WHOSE, Area, Target, targets

from handrail.server.access import Access, Client, Person
from handrail.server.guard import CSP, Guard
from handrail.store.journal import open_journal

pytestmark = pytest.mark.anyio

Header = tuple[str, str]
HOST, ORIGIN = "127.0.0.1:7433", "http://127.0.0.1:7433"
OWN_HOSTS = ("127.0.0.1:7433", "localhost:7433")
ALL = targets()

FOREIGN_HOSTS: dict[str, list[str]] = {
    "none at all": [],
    "an empty one": [""],
    "another name": ["evil.example:7433"],
    "a name that was rebound to us": ["rebound.127.0.0.1.example:7433"],
    "no port": ["127.0.0.1"],
    "another port": ["127.0.0.1:7434"],
    "a port of the web": ["127.0.0.1:80"],
    "a port with a zero before it": ["127.0.0.1:07433"],
    "a name without port": ["localhost"],
    "another case": ["LocalHost:7433"],
    "a dot at the end": ["localhost.:7433"],
    "an address with a dot at the end": ["127.0.0.1.:7433"],
    "a subdomain": ["a.localhost:7433"],
    "a short address": ["127.1:7433"],
    "a decimal address": ["2130706433:7433"],
    "a hexadecimal address": ["0x7f000001:7433"],
    "an octal address": ["0177.0.0.1:7433"],
    "another loopback address": ["127.0.0.2:7433"],
    "every address": ["0.0.0.0:7433"],
    "IPv6": ["[::1]:7433"],
    "IPv4 in IPv6": ["[::ffff:127.0.0.1]:7433"],
    "ours as a prefix": ["127.0.0.1:7433.evil.example"],
    "ours as a user": ["127.0.0.1:7433@evil.example"],
    "ours and another in one": ["127.0.0.1:7433, evil.example"],
    "a space before": [" 127.0.0.1:7433"],
    "ours, then another": [HOST, "evil.example"],
    "another, then ours": ["evil.example", HOST],
    "ours twice": [HOST, HOST],
}
FOREIGN_ORIGINS: dict[str, list[str]] = {
    "null": ["null"],
    "an empty one": [""],
    "another site": ["http://evil.example"],
    "another scheme": ["https://127.0.0.1:7433"],
    "a scheme in capitals": ["HTTP://127.0.0.1:7433"],
    "no port": ["http://127.0.0.1"],
    "another port": ["http://127.0.0.1:7434"],
    "our other name": ["http://localhost:7433"],
    "another port of localhost": ["http://localhost:3000"],
    "a subdomain": ["http://a.localhost:7433"],
    "ours as a prefix": ["http://127.0.0.1:7433.evil.example"],
    "ours with a path": ["http://127.0.0.1:7433/"],
    "ours with a space": ["http://127.0.0.1:7433 "],
    "a file": ["file://"],
    "an extension": ["chrome-extension://abcdefgh"],
    "ours, then another": [ORIGIN, "http://evil.example"],
    "another, then ours": ["http://evil.example", ORIGIN],
    "ours twice": [ORIGIN, ORIGIN],
}
FOREIGN_SITES: dict[str, list[str]] = {
    "another site": ["cross-site"],
    "the same site": ["same-site"],
    "an empty one": [""],
    "capitals": ["Same-Origin"],
    "two in one": ["none, cross-site"],
    "ours, then another": ["same-origin", "cross-site"],
    "another, then ours": ["cross-site", "none"],
}
GUARDED = ("person", "content", "agent")
BEARERS = ("none", "wrong", "call", "read", "person")


@dataclass
class Recorder:
    """In the place of the application: answers everything, and remembers that it was asked."""

    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append((scope["type"], scope["path"]))
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        else:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})


@dataclass
class Bench:
    """The guard, a bearer of each kind, and what came through."""

    guard: Guard
    recorder: Recorder
    bearers: dict[str, str | None]

    async def reaches(self, target: Target, headers: Iterable[Header], path: str | None = None) -> bool:
        """Whether a request with exactly these headers gets to a handler."""
        return (await self.ask(target, headers, path))[1]

    async def ask(
        self, target: Target, headers: Iterable[Header], path: str | None = None
    ) -> tuple[list[Message], bool]:
        self.recorder.seen.clear()
        said: list[Message] = []

        async def send(message: Message) -> None:
            said.append(message)

        await self.guard(scope_of(target, headers, path), unheard, send)
        return said, bool(self.recorder.seen)

    def right(self, target: Target) -> str | None:
        """The bearer that opens this target."""
        return self.bearers["call" if target.area == "agent" else "person"]


async def unheard() -> Message:
    raise AssertionError("a request is judged before anything of its body is read")


def scope_of(target: Target, headers: Iterable[Header], path: str | None) -> Scope:
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    scope: Scope = {"path": path or target.path, "headers": given, "query_string": b"", "root_path": ""}
    if not target.is_socket:
        return {**scope, "type": "http", "method": target.method, "http_version": "1.1", "scheme": "http"}
    offered = [value for name, value in headers if name == "sec-websocket-protocol"]
    protocols = [name.strip() for value in offered for name in value.split(",")]
    return {**scope, "type": "websocket", "subprotocols": protocols, "scheme": "ws"}


def usual(bearer: str | None, *, host: str = HOST) -> list[Header]:
    return [("host", host), *([("authorization", f"Bearer {bearer}")] if bearer else [])]


def changed(headers: list[Header], name: str, values: list[str]) -> list[Header]:
    return [header for header in headers if header[0] != name] + [(name, value) for value in values]


@pytest.fixture
async def bench(home: Path) -> AsyncIterator[Bench]:
    person, call = "p" * 43, "c" * 43
    signed = json.dumps({hashlib.sha256(person.encode()).hexdigest(): ["s1", "page"]}).encode()
    client = Client(credential="k1", name="agent", workspace="/w")
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [(hashlib.sha256(call.encode()).hexdigest(), client)], signed)
        read = access.grant(Person(place="command line", approves=False))
        recorder = Recorder()
        known = {"none": None, "wrong": "w" * 43, "call": call, "read": read, "person": person}
        yield Bench(Guard(recorder, access, OWN_HOSTS), recorder, known)


def may(area: Area, target: Target, bearer: str) -> bool:
    """Who may come in, said once more and differently from the guard."""
    match area:
        case "page" | "open":
            return True
        case "agent":
            return bearer == "call"
        case "person":
            looks = target.is_socket or target.method == "GET"
            return bearer == "person" or (bearer == "read" and looks)
        case "content":
            return bearer == "person"


def test_every_route_has_an_entry_and_every_entry_a_route() -> None:
    assert {str(target) for target in ALL} == WHOSE.keys()


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_no_request_for_a_foreign_host_reaches_a_handler(bench: Bench, host: str) -> None:
    for target in ALL:
        headers = changed(usual(bench.right(target)), "host", FOREIGN_HOSTS[host])
        assert not await bench.reaches(target, headers), target
        assert not await bench.reaches(target, [*headers, ("x-forwarded-host", HOST)]), target


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
async def test_no_request_from_a_foreign_origin_reaches_a_handler(bench: Bench, origin: str) -> None:
    for target in ALL:
        headers = changed(usual(bench.right(target)), "origin", FOREIGN_ORIGINS[origin])
        assert not await bench.reaches(target, headers), target
        navigating = [*headers, *NAVIGATION]
        assert not await bench.reaches(target, navigating), target


@pytest.mark.parametrize("site", FOREIGN_SITES)
@pytest.mark.parametrize("mode", ["none", "cors", "no-cors", "same-origin", "websocket"])
async def test_no_request_from_another_site_reaches_a_handler(bench: Bench, site: str, mode: str) -> None:
    for target in ALL:
        headers = changed(usual(bench.right(target)), "sec-fetch-site", FOREIGN_SITES[site])
        if mode != "none":
            headers += [("sec-fetch-mode", mode), ("sec-fetch-dest", "document")]
        assert not await bench.reaches(target, headers), target


NAVIGATION: list[Header] = [
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
]


async def test_a_link_from_another_site_opens_the_page_and_nothing_else(bench: Bench) -> None:
    for target in ALL:
        came = await bench.reaches(target, [*usual(bench.right(target)), *NAVIGATION])
        assert came is (target.area == "page"), target


@pytest.mark.parametrize("dest", ["iframe", "frame", "embed", "object", "script", "image", "empty", ""])
async def test_another_site_can_neither_frame_nor_embed_the_page(bench: Bench, dest: str) -> None:
    for target in ALL:
        headers = changed([*usual(None), *NAVIGATION], "sec-fetch-dest", [dest])
        assert not await bench.reaches(target, headers), target


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_another_site_can_only_get_the_page(bench: Bench, method: str) -> None:
    for target in ALL:
        if target.area == "page":
            assert not await bench.reaches(replace(target, method=method), [*usual(None), *NAVIGATION])


@pytest.mark.parametrize("bearer", BEARERS)
async def test_each_bearer_opens_what_is_its_own_and_nothing_else(bench: Bench, bearer: str) -> None:
    for target in ALL:
        came = await bench.reaches(target, usual(bench.bearers[bearer]))
        assert came is may(target.area, target, bearer), target


@pytest.mark.parametrize(
    "own",
    [
        [],
        [("origin", ORIGIN)],
        [("sec-fetch-site", "same-origin")],
        [("sec-fetch-site", "none")],
        [("origin", ORIGIN), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")],
    ],
    ids=str,
)
async def test_what_the_page_and_programs_send_comes_through(bench: Bench, own: list[Header]) -> None:
    for target in ALL:
        assert await bench.reaches(target, [*usual(bench.right(target)), *own]), target


async def test_under_our_other_name_nobody_is_signed_in_and_only_agents_come_through(bench: Bench) -> None:
    for target in ALL:
        headers = usual(bench.right(target), host="localhost:7433")
        own = [*headers, ("origin", "http://localhost:7433")]
        assert await bench.reaches(target, own) is (target.area == "agent"), target
        assert not await bench.reaches(target, [*headers, ("origin", ORIGIN)]), target


@pytest.mark.parametrize("path", ["/", "/t/x", "//evil.example/", "@evil.example/", "/%0d%0aset-cookie: a"])
async def test_a_page_under_our_other_name_is_sent_to_the_address_that_is_ours(
    bench: Bench, path: str
) -> None:
    page = next(target for target in ALL if target.area == "page")
    said, reached = await bench.ask(page, usual(None, host="localhost:7433"), path)
    assert not reached
    assert said[0]["status"] == 307
    headers = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    assert headers["location"].startswith(f"{ORIGIN}/")
    assert "\r" not in headers["location"]


@pytest.mark.parametrize(
    "spelling",
    [
        "Basic {}",
        "{}",
        "Bearer",
        "Bearer ",
        "Bearer{}",
        "Bearer {} x",
        "Token {}",
        'Bearer "{}"',
        "Bearer {},",
    ],
)
async def test_a_bearer_in_another_spelling_is_none(bench: Bench, spelling: str) -> None:
    for target in ALL:
        if target.area in GUARDED:
            headers = [("host", HOST), ("authorization", spelling.format(bench.right(target)))]
            assert not await bench.reaches(target, headers), target


async def test_two_bearers_are_none(bench: Bench) -> None:
    for target in ALL:
        if target.area in GUARDED:
            twice = [*usual(bench.right(target)), ("authorization", f"Bearer {bench.right(target)}")]
            assert not await bench.reaches(target, twice), target


@pytest.mark.parametrize(
    "name", ["cookie", "x-authorization", "proxy-authorization", "sec-websocket-protocol"]
)
async def test_a_bearer_in_another_header_is_none(bench: Bench, name: str) -> None:
    for target in ALL:
        if target.area in GUARDED and not (target.is_socket and name.startswith("sec-")):
            for value in (f"Bearer {bench.right(target)}", f"bearer.{bench.right(target)}"):
                assert not await bench.reaches(target, [("host", HOST), (name, value)]), target


@pytest.mark.parametrize("bearer", BEARERS)
async def test_a_socket_takes_its_bearer_as_a_subprotocol_too(bench: Bench, bearer: str) -> None:
    for target in ALL:
        if target.is_socket:
            offered = f"handrail, bearer.{bench.bearers[bearer]}"
            came = await bench.reaches(target, [("host", HOST), ("sec-websocket-protocol", offered)])
            assert came is may(target.area, target, bearer), target


async def test_a_socket_that_is_offered_two_bearers_takes_neither(bench: Bench) -> None:
    for target in ALL:
        if target.is_socket:
            offered = f"bearer.{bench.bearers['wrong']}, bearer.{bench.bearers['person']}"
            assert not await bench.reaches(target, [("host", HOST), ("sec-websocket-protocol", offered)])


async def test_a_path_without_an_entry_under_the_api_is_for_people(bench: Bench) -> None:
    for path in (
        "/api",
        "/api/",
        "/api/new-route",
        "/api/health/more",
        "/api/sign-in/",
        "/api/../x",
        "/api//",
    ):
        assert not await bench.reaches(Target("GET", path), usual(None), path), path
        assert await bench.reaches(Target("GET", path), usual(bench.bearers["person"]), path), path


async def test_every_answer_carries_the_headers_that_bind_the_browser(bench: Bench) -> None:
    wanted: dict[str, Any] = {
        "content-security-policy": CSP,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    foreign = changed(usual(None), "host", ["evil.example"])
    for target in ALL:
        for headers in (usual(bench.right(target)), usual(None), foreign):
            if target.is_socket:
                continue
            said, _ = await bench.ask(target, headers)
            told = {name.decode(): value.decode() for name, value in said[0]["headers"]}
            assert {name: told.get(name) for name in wanted} == wanted, target
            if target.area in ("person", "content", "open"):
                assert told["cache-control"] == "no-store"


def test_the_policy_allows_no_foreign_source_and_no_inline_script() -> None:
    parts = {part.split()[0]: part.partition(" ")[2] for part in CSP.split("; ")}
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == "'self'"
    assert parts["connect-src"] == "'self'"
    assert parts["frame-ancestors"] == parts["base-uri"] == parts["form-action"] == "'none'"
    assert parts["require-trusted-types-for"] == "'script'"
    assert "http" not in CSP
    assert "*" not in CSP
