"""MCP servers over HTTP behind the gate: real HTTP on loopback, servers of the official SDK, and one with bad habits."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.mcp_client import Generation, agent, stdio
from tests.support.mcp_servers.over_http import Web, http_servers
from tests.support.person_client import Person, person_of
from tests.support.relayed_servers import call, said, tasks

Json = dict[str, Any]
SERVERS = ("new", "old", "json")
KEY = "k3y-of-the-web"
generations = pytest.mark.parametrize("generation", ["legacy", "2026-07-28"])
servers = pytest.mark.parametrize("server", SERVERS)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with http_servers() as web:
        yield web


@pytest.fixture(scope="module")
def served(web: Web) -> Iterator[Home]:
    config = ""
    for name in (*SERVERS, "bad"):
        config += f'[[servers]]\nname = "{name}"\nurl = "{web.url(name)}"\n'
        config += 'headers = { Authorization = "Bearer {secret:WEB}" }\n'
        config += f'[[rules]]\neffect = "allow"\nserver = "{name}"\n'
    with running_daemon(config) as home:
        yield home


@pytest.fixture(scope="module")
def person(served: Home, web: Web) -> Person:
    person = person_of(served)

    async def store() -> None:
        (await person.ask("PUT", "secrets/WEB", {"value": KEY})).raise_for_status()

    anyio.run(store)
    web.bearer = KEY
    return person


@servers
async def test_a_server_over_http_is_used_as_if_it_were_called_directly(
    served: Home, person: Person, trusted: Path, web: Web, server: str
) -> None:
    steps = list[tuple[float, float | None, str | None]]()

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async with agent(served, trusted, person) as client:
        echoed = await call(client.client, f"{server}__echo", text="hé\u2028llo")
        leaked = await call(client.client, f"{server}__leaks")
        await client.client.call_tool(f"{server}__counts", {}, progress_callback=step)
        shown = await person.get("calls", limit=5)
    sent = json.loads(said(leaked))

    async def is_ended() -> bool | None:
        ended = {seen.headers["mcp-session-id"] for seen in web.of(server, "DELETE")}
        return server == "new" or sent["mcp-session-id"] in ended or None

    await eventually(is_ended)
    assert said(echoed) == "hé\u2028llo"
    assert sent["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(shown)
    assert steps == ([] if server == "json" else [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")])
    if server == "new":
        assert (sent["mcp-method"], sent["mcp-name"]) == ("tools/call", "leaks")
        assert "mcp-session-id" not in sent
    else:
        ended = [seen.headers["mcp-session-id"] for seen in web.of(server, "DELETE")]
        assert sent["mcp-session-id"] in ended
        assert sent["mcp-protocol-version"] == "2025-11-25"


@servers
async def test_cancel_reaches_a_server_over_http_at_once(
    served: Home, person: Person, trusted: Path, web: Web, server: str
) -> None:
    web.events.clear()
    ended = ""
    async with agent(served, trusted, person) as client, tasks() as group:
        group.start_soon(call, client.client, f"{server}__waits")
        await eventually(lambda: _find(web, "waits began"))
        start = time.monotonic()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            ended = await eventually(lambda: _find(web, "waits cancelled"))

    assert float(ended.split()[-1]) - start < 0.5  # a bound for a machine under load


async def _find(web: Web, event: str) -> str | None:
    return next((each for each in web.events if each.startswith(event)), None)


async def test_a_broken_stream_is_resumed(served: Home, person: Person, trusted: Path, web: Web) -> None:
    async with agent(served, trusted, person) as client:
        result = await call(client.client, "old__breaks")

    resumed = [each for each in web.of("old", "GET") if "last-event-id" in each.headers]
    assert said(result) == "resumed"
    assert resumed[-1].headers["last-event-id"]


@generations
@pytest.mark.parametrize("server", ["new", "old"])
async def test_a_question_of_a_server_over_http_reaches_the_client(
    served: Home, person: Person, trusted: Path, generation: Generation, server: str
) -> None:
    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert params.message == f"{server} asks: Who?"
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with Client(
        stdio(served, trusted), mode=generation, elicitation_callback=answer, cache=None
    ) as client:
        result = await call(client, f"{server}__asks")

    assert "Ada" in said(result)


async def test_a_server_that_sends_nonsense_costs_only_its_own_calls(
    served: Home, person: Person, trusted: Path
) -> None:
    words = {
        "elsewhere": "redirects to http://localhost:1/other, which is not followed",
        "nothing": "answered with nothing instead of a message (HTTP 202)",
        "page": "answered with text/html instead of a message",
        "fails": "answered with HTTP 503",
        "endless": "a message of more than 32 MiB",
        "huge": "a message of more than 32 MiB",
        "cut": "ended the response before the answer",
        "odd": "ended the response before the answer",
        "floods": "sent too many messages",
    }
    async with agent(served, trusted, person) as client, tasks() as group:
        group.start_soon(client.client.call_tool, "bad__hangs")
        results = {tool: await call(client.client, f"bad__{tool}") for tool in words}
        again = await call(client.client, "bad__echo")
        group.cancel_scope.cancel()

    for tool, words_of_tool in words.items():
        assert results[tool].is_error, tool
        assert words_of_tool in said(results[tool])
    assert said(again) == "still here"


async def test_a_session_that_the_server_forgot_is_opened_again(
    served: Home, person: Person, trusted: Path, web: Web
) -> None:
    async with agent(served, trusted, person) as client:
        await call(client.client, "json__echo", text="one")
        await _forget_sessions(web)
        lost = await call(client.client, "json__echo", text="two")
        again = await call(client.client, "json__echo", text="three")

    assert "does not know the session any more" in said(lost)
    assert said(again) == "three"


async def _forget_sessions(web: Web) -> None:
    import httpx2  # noqa: PLC0415

    session = web.of("json", "tools/call")[-1].headers["mcp-session-id"]
    headers = {"authorization": f"Bearer {KEY}", "mcp-session-id": session}
    async with httpx2.AsyncClient() as http:
        (await http.delete(web.url("json"), headers=headers)).raise_for_status()


async def test_a_refused_key_is_said(served: Home, person: Person, trusted: Path, web: Web) -> None:
    web.bearer = "another"
    try:
        async with agent(served, trusted, person) as client:
            refused = await call(client.client, "new__echo", text="x")
    finally:
        web.bearer = KEY
        (await person.ask("PUT", "secrets/WEB", {"value": KEY})).raise_for_status()

    assert refused.is_error
    assert "new refuses access (HTTP 401): check the `headers`" in said(refused)


eras = pytest.mark.parametrize("server", ["new", "old"])


class Ears:
    """The change notifications that a client of either generation gets."""

    def __init__(self) -> None:
        self.heard = list[str]()

    async def hear(self, message: Any) -> None:
        self.heard.append(str(getattr(message, "method", type(message).__name__)))

    async def listen(self, client: Client, generation: Generation, uri: str, ready: anyio.Event) -> None:
        if generation == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
            ready.set()
            return
        async with client.listen(
            tools_list_changed=True, resources_list_changed=True, resource_subscriptions=[uri]
        ) as stream:
            assert stream.honored.resource_subscriptions == [uri]
            ready.set()
            async for event in stream:
                self.heard.append(type(event).__name__)

    async def has(self, word: str) -> bool | None:
        return any(word in each.replace("_", "").replace("/", "").lower() for each in self.heard) or None


@generations
@eras
async def test_changes_reach_a_client_whatever_the_generations(
    served: Home, person: Person, trusted: Path, generation: Generation, server: str
) -> None:
    ears, uri, ready = Ears(), f"{server}://one", anyio.Event()
    async with (
        Client(stdio(served, trusted), mode=generation, message_handler=ears.hear, cache=None) as client,
        tasks() as group,
    ):
        await call(client, f"{server}__echo", text="started")
        await client.list_tools()
        group.start_soon(ears.listen, client, generation, uri, ready)
        with anyio.fail_after(20):
            await ready.wait()
        await call(client, f"{server}__updates")
        await eventually(lambda: ears.has("updated"))
        await call(client, f"{server}__grows", name=f"{generation[:4]}tool")
        await eventually(lambda: ears.has("toolslistchanged"))
        names = [tool.name for tool in (await client.list_tools()).tools]
        group.cancel_scope.cancel()

    assert f"{server}__{generation[:4]}tool" in names


@generations
@eras
async def test_features_pass_whatever_the_generations(
    served: Home, person: Person, trusted: Path, generation: Generation, server: str
) -> None:
    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        raise AssertionError("sampling is denied by default")

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///somewhere"})])

    async with Client(
        stdio(served, trusted),
        mode=generation,
        sampling_callback=sample,
        list_roots_callback=roots,
        cache=None,
    ) as client:
        found = await call(client, f"{server}__roots")
        try:
            sampled = await call(client, f"{server}__samples")
            refused = sampled.is_error
        except MCPError:
            refused = True
        read = await client.read_resource(f"{server}://one")
        prompt = await client.get_prompt(f"{server}__greet", {"who": "Ada"})
        completed = await client.complete(
            types.PromptReference(name=f"{server}__greet"), {"name": "who", "value": "A"}
        )

    assert said(found) == "file:///somewhere"
    assert refused
    assert "the one" in str(read)
    assert "Greet Ada" in str(prompt)
    assert completed.completion.values == ["A!"]
