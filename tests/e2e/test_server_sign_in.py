"""Signing in to an MCP server over HTTP: a real authorization server on loopback, and a browser that follows links."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon
from tests.support.mcp_client import agent
from tests.support.mcp_servers.authorization import Authorization
from tests.support.mcp_servers.over_http import Web, http_servers
from tests.support.person_client import Person, person_of
from tests.support.relayed_servers import call, said

Json = dict[str, Any]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with http_servers() as web:
        yield web


@pytest.fixture(scope="module")
def served(web: Web) -> Iterator[Home]:
    config = f'[[servers]]\nname = "private"\nurl = "{web.url("private")}"\n'
    config += '[[rules]]\neffect = "allow"\nserver = "private"\n'
    with running_daemon(config) as home:
        yield home


@pytest.fixture(scope="module")
def person(served: Home) -> Person:
    return person_of(served)


@pytest.fixture
def authorization(web: Web) -> Authorization:
    web.authorization.lies.clear()
    web.authorization.seconds = 3600
    return web.authorization


async def browse(url: str, **changes: str) -> httpx.Response:
    """Open a link as a browser does, with changes to what comes back to Handrail."""
    async with httpx.AsyncClient(verify=False, timeout=BOUND) as http:
        asked = await http.get(await follow(url))
        back = urlsplit(asked.headers["location"])
        query = {name: values[0] for name, values in parse_qs(back.query).items()} | changes
        return await http.get(f"{back.scheme}://{back.netloc}{back.path}", params=query)


async def follow(url: str) -> str:
    """The address of the authorization server that Handrail's link leads to."""
    async with httpx.AsyncClient(timeout=BOUND) as http:
        begun = await http.get(url)
    assert begun.status_code == 302, begun.text
    return begun.headers["location"]


async def sign_in(person: Person) -> httpx.Response:
    return await browse(await begin(person))


async def begin(person: Person) -> str:
    return str((await person.post("logins/private"))["url"])


async def state(person: Person) -> Json:
    (found,) = await person.get("logins")
    return found


async def test_a_person_signs_in_and_the_agent_never_sees_a_token(
    served: Home, person: Person, trusted: Path, web: Web, authorization: Authorization
) -> None:
    async with agent(served, trusted, person) as client:
        before = await call(client.client, "private__echo", text="x")
        needed = await state(person)
        page = await sign_in(person)
        done = await state(person)
        after = await call(client.client, "private__echo", text="hello")
        events = await person.get("events", after=0)
    asked, token = authorization.asked[-1], next(iter(authorization.access))

    assert before.is_error
    assert "private needs sign-in. Ask the person to run `handrail servers login private`" in said(before)
    assert (needed["state"], done) == ("needed", {"server": "private", "state": "done", "problem": ""})
    assert page.status_code == 200
    assert "You are signed in to private" in page.text
    assert said(after) == "hello"
    assert (asked["resource"], asked["scope"], asked["code_challenge_method"]) == (
        web.url("private"),
        "tools",
        "S256",
    )
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert all(each.headers.get("authorization") in (None, f"Bearer {token}") for each in web.of("private"))
    shown = json.dumps([events, await person.get("secrets"), await person.get("logins")])
    assert token not in shown + str(after)
    for path in served.places.data.rglob("*"):
        if path.is_file() and path != served.places.secrets:
            assert token.encode() not in path.read_bytes(), path


async def test_a_token_is_renewed_and_one_that_cannot_be_asks_for_a_sign_in(
    served: Home, person: Person, trusted: Path, authorization: Authorization
) -> None:
    authorization.seconds = 1  # it is renewed before each request
    await sign_in(person)
    async with agent(served, trusted, person) as client:
        renewed = await call(client.client, "private__echo", text="renewed")
        authorization.seconds = 3600
        await call(client.client, "private__echo", text="x")
        authorization.access.clear()  # as if it had been revoked; the refresh token is still good
        refused = await call(client.client, "private__echo", text="again")
        authorization.access.clear()
        authorization.refresh.clear()
        lost = await call(client.client, "private__echo", text="lost")

    assert authorization.grants[-1]["grant_type"] == "refresh_token"
    assert [said(renewed), said(refused)] == ["renewed", "again"]
    assert "private needs sign-in" in said(lost)
    assert (await state(person))["state"] == "needed"


async def test_only_the_browser_of_this_sign_in_ends_it(person: Person, authorization: Authorization) -> None:
    url = await begin(person)
    way = await follow(url)
    stranger = await browse(url, state="guessed")
    pending = await state(person)
    other = await browse(url, iss="https://other.example")
    failed = await state(person)
    async with httpx.AsyncClient(verify=False) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(parse_qs(urlsplit(way).query)["redirect_uri"][0])

    assert (stranger.status_code, pending["state"]) == (400, "pending")
    assert other.status_code == 400
    assert "another authorization server" in failed["problem"]
    assert failed["state"] != "done"


async def test_nonsense_on_the_way_back_does_not_end_a_sign_in(
    person: Person, authorization: Authorization
) -> None:
    url = await begin(person)
    back = urlsplit(url)
    stream = await anyio.connect_tcp(str(back.hostname), int(back.port or 0))
    async with stream:
        await stream.send(b"GET //[ HTTP/1.1\r\n\r\n")
        answer = await stream.receive()
    pending = await state(person)
    back_again = await browse(url)

    assert b"400" in answer
    assert (pending["state"], back_again.status_code) == ("pending", 200)


async def test_a_lifetime_that_no_clock_has_is_not_taken(
    person: Person, authorization: Authorization
) -> None:
    authorization.seconds = 10**400
    assert (await sign_in(person)).status_code == 200
    assert (await state(person))["state"] == "done"


async def test_a_sign_in_is_forgotten(
    served: Home, person: Person, trusted: Path, authorization: Authorization
) -> None:
    await sign_in(person)
    async with agent(served, trusted, person) as client:
        await call(client.client, "private__echo", text="x")
        statuses = [
            (await person.ask("DELETE", f"logins/{name}")).status_code for name in ("private", "none")
        ]
        after = await call(client.client, "private__echo", text="x")

    assert statuses == [204, 404]
    assert "private needs sign-in" in said(after)
    assert "oauth:private" not in served.places.secrets.read_text()

    async def is_needed() -> bool | None:
        return (await state(person))["state"] == "needed" or None

    await eventually(is_needed)


async def test_a_server_with_a_session_can_be_removed(
    served: Home, person: Person, trusted: Path, authorization: Authorization
) -> None:
    await sign_in(person)
    async with agent(served, trusted, person) as client:
        used = await call(client.client, "private__echo", text="x")
        removed = await person.ask("DELETE", "servers/private")
        still_there = await person.get("logins")

    assert said(used) == "x"
    assert (removed.status_code, still_there) == (204, [])
