"""What is said, as it is said; what survives a kill; and an agent of ours that uses our own tools."""

import json
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from tests.support.daemon_home import Home, find_processes, running_daemon, until
from tests.support.person_client import Json, Person, person_of
from tests.support.scripted_agent import CAPABILITIES, command
from tests.support.terminal_socket import open_websocket, run_in_thread
from tests.support.thread_client import (
    SCRIPTED,
    Conversation,
    agents_config,
    follow_thread,
    open_thread,
    parts_of,
    reported_json,
    text_of,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus

from handrail.door.connect import HelloRefused, connect, say_hello

pytestmark = pytest.mark.anyio

BEHIND_SECONDS = 0.2
"""How much of the end of a streaming answer a kill may cost."""
ENDS_SECONDS = 10.0
"""For a daemon to end with an agent that heeds nothing: five are the most it takes on a quiet machine."""
STDIO_ONLY = {**CAPABILITIES, "mcpCapabilities": {"http": False}}


@pytest.fixture
def home() -> Iterator[Home]:
    """A daemon with an agent that does as it is told, to be killed at will."""
    with running_daemon(SCRIPTED) as home:
        yield home


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Home]:
    """The same for tests that leave it as it is."""
    with running_daemon(SCRIPTED) as home:
        yield home


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# Following


async def test_a_follower_hears_an_answer_grow_and_one_that_comes_back_goes_on_from_there(
    shared_person: Person, workspace: Path
) -> None:
    thread = await open_thread(shared_person, workspace)
    prompted = await thread.prompt({"say": "w{n} ", "times": 300, "every": 0.005}, {"say": "end."})
    await thread.heard(prompted["operation"], "w0")

    def listen() -> str:
        with follow_thread(shared_person, thread.id) as first:
            first.until("w50 ")
            rev, texts = first.rev, dict(first.texts)
        with follow_thread(shared_person, thread.id, rev) as then:
            then.texts |= texts
            return then.until("w299 end.")

    heard = await run_in_thread(listen)
    whole = text_of(await thread.ended(prompted["operation"]))
    assert whole == "".join(f"w{n} " for n in range(300)) + "end."
    assert whole in heard


async def test_a_follower_of_the_snapshots_place_gets_the_rest_and_no_more(
    shared_person: Person, workspace: Path
) -> None:
    thread = await open_thread(shared_person, workspace)
    prompted = await thread.prompt({"say": "early "}, {"sleep": 0.3}, {"say": "late"}, {"plan": ["x"]})
    await thread.heard(prompted["operation"], "early")
    seen = await thread.look()

    def listen() -> str:
        with follow_thread(shared_person, thread.id, seen["rev"]) as page:
            for message in seen["said"]:
                for part in message["parts"]:
                    page.texts[message["id"], part["n"]] = part["text"]
            return page.until("early late")

    assert "early late" in await run_in_thread(listen)


async def test_a_follower_that_never_reads_costs_nothing(shared_person: Person, workspace: Path) -> None:
    thread = await open_thread(shared_person, workspace)
    before = (await shared_person.get("health"))["daemon"]["rss_bytes"]
    with closing(await run_in_thread(lambda: _deaf(shared_person, f"threads/{thread.id}/live"))):
        answer = await thread.act({"say": "x" * 1000, "times": 10_000})
    cost = (await shared_person.get("health"))["daemon"]["rss_bytes"] - before
    assert len(text_of(answer)) == 10_000_000
    assert cost < 250 * 1024 * 1024, "the text is held while it is said, but not once for each piece"


def _deaf(person: Person, path: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", person.home.port), timeout=20)
    sock.sendall(
        f"GET /api/{path}?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{person.home.port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: handrail, bearer.{person.bearer}\r\n\r\n".encode()
    )
    assert sock.recv(12) == b"HTTP/1.1 101"
    return sock


async def test_there_is_nothing_to_follow_where_there_is_no_thread(
    shared_person: Person, workspace: Path
) -> None:
    thread = await open_thread(shared_person, workspace)

    def codes(path: str, then: Callable[[], None] = lambda: None) -> int | None:
        with open_websocket(shared_person, path) as follower:
            then()
            try:
                while True:
                    follower.recv(timeout=20)
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else None

    def delete() -> None:
        url = f"{shared_person.home.url}/api/threads/{thread.id}"
        httpx.delete(url, headers=shared_person.headers, timeout=20).raise_for_status()

    assert await run_in_thread(lambda: codes("threads/h0/live")) == 4404
    assert await run_in_thread(lambda: codes(f"threads/{thread.id}/live", delete)) == 4404


async def test_whoever_only_watches_hears_nothing_of_what_is_said(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    thread = await open_thread(shared_person, workspace, title="Private words")

    def listen() -> None:
        with closing(connect(shared_home.places, start=False)) as sock:
            watcher = Person(shared_home, say_hello(sock, "read")["bearer"])
            with (
                pytest.raises((ConnectionClosed, InvalidStatus)),
                open_websocket(watcher, f"threads/{thread.id}/live") as follower,
            ):
                follower.recv(timeout=20)
            for path in ("threads", f"threads/{thread.id}", "search?q=words", "images/" + "0" * 64):
                got = httpx.get(f"{shared_home.url}/api/{path}", headers=watcher.headers)
                assert got.status_code == 403, path
            got = httpx.get(f"{shared_home.url}/api/events", headers=watcher.headers)
            assert got.status_code == 200
            assert "Private words" not in got.text

    await run_in_thread(listen)


# Killed in the middle of an answer


@pytest.mark.serial  # it measures 0.2 s of the clock
async def test_a_kill_costs_no_more_than_the_last_moment_of_an_answer(
    home: Home, person: Person, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "tokens"
    thread = await open_thread(person, workspace)
    prompted = await thread.prompt({"say": "w{n} ", "times": 100_000, "every": 0.005, "log": str(log)})
    await thread.heard(prompted["operation"], "w200 ")

    home.kill()
    killed = time.time()
    home.up()

    answer = await thread.ended(prompted["operation"])
    tokens = [json.loads(line) for line in log.read_text().splitlines()]
    before = [token for token in tokens if token["at"] < killed - BEHIND_SECONDS]
    due = "".join(token["update"]["content"]["text"] for token in before)
    kept = text_of(answer)
    print(f"{len(before)} tokens were due, {kept.count(' ')} of {len(tokens)} were kept")
    assert len(before) > 150
    assert kept.startswith(due)
    assert "".join(token["update"]["content"]["text"] for token in tokens).startswith(kept)
    assert answer["stop"] == "interrupted"
    seen = await thread.look()
    assert (seen["operation"], seen["stop"]) == (None, "interrupted")
    await until(lambda: find_processes(str(tmp_path)) == [])

    again = await thread.act({"say": "and on"})
    assert (text_of(again), again["stop"]) == ("and on", "end_turn")
    assert [m["role"] for m in (await thread.look())["said"]] == ["user", "assistant"] * 2


async def test_a_command_in_an_agents_terminal_goes_on_after_a_kill_and_can_be_cancelled(
    home: Home, person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    prompted = await thread.prompt(
        {"terminal": {"command": "sleep", "args": ["67.1111"]}, "as": "t"}, {"hang": True}
    )
    call = await person.allow("67.1111")
    await until(lambda: bool(find_processes("sleep\x0067.1111")))

    home.kill()
    home.up()

    assert (await thread.ended(prompted["operation"]))["stop"] == "interrupted"
    before = await person.call(call)
    assert (before["status"], before["thread"], before["handed_back"]) == ("running", thread.id, True)
    await person.cancel(call)
    assert (await person.settled(call))["status"] == "cancelled"
    await until(lambda: not find_processes("sleep\x0067.1111"))


async def test_commands_whose_agent_ended_with_the_daemon_are_marked_and_stopped_together(
    home: Home, person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    marks = ("67.2221", "67.2222")
    await thread.prompt(
        *({"terminal": {"command": "sleep", "args": [mark]}, "as": mark} for mark in marks), {"hang": True}
    )
    calls = [await person.allow(mark) for mark in marks]
    own = await person.post("terminals", {"cwd": str(workspace)})
    await until(lambda: len(find_processes("sleep\x0067.222")) == 2)
    before = {row["id"]: row["agent_gone"] for row in await person.get("terminals", running=True)}

    home.kill()
    home.up()

    after = {row["call_id"]: row["agent_gone"] for row in await person.get("terminals", running=True)}
    closed = await person.post("terminals/close", {"which": "agent_gone"})
    await until(lambda: not find_processes("sleep\x0067.222"))
    left = await person.get("terminals", running=True)
    assert [*before.values()] == [False] * 3
    assert after == {calls[0]: True, calls[1]: True, None: False}
    assert sorted(row["call_id"] for row in closed) == sorted(calls)
    assert all(row["stopped"] and not row["running"] and not row["agent_gone"] for row in closed)
    assert [row["id"] for row in left] == [own["id"]]
    assert await person.post("terminals/close", {"which": "agent_gone"}) == []
    for call in calls:
        assert (await person.settled(call))["status"] != "running"


async def test_a_restart_ends_the_agents_cleanly_and_the_thread_goes_on(
    home: Home, person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    pid = reported_json(await thread.act({"tell_pid": True}))
    prompted = await thread.prompt({"say": "begun"}, {"hang": True})
    await thread.heard(prompted["operation"], "begun")

    await person.post("down", keep_terminals=True)
    await until(lambda: not home.is_ready())
    home.up()

    await until(lambda: not is_there(pid))
    assert (await thread.ended(prompted["operation"]))["stop"] == "interrupted"
    assert text_of(await thread.act({"say": "again"})) == "again"


async def test_a_daemon_that_ends_takes_even_an_agent_along_that_heeds_nothing(workspace: Path) -> None:
    with running_daemon(agents_config(scripted=command(ignores_eof=True))) as home:
        thread = await open_thread(person_of(home), workspace)
        prompted = await thread.prompt(
            {"spawn": "x", "setsid": True, "ignores_term": True},
            {"tell": "x"},
            {"ignore_cancel": True},
            {"hang": True},
        )
        child = reported_json(await thread.heard(prompted["operation"], "pid"))["pid"]
        assert is_there(child)

        took = home.signal(home.pid, signal.SIGTERM)

        print(f"ended {took:.2f} s after SIGTERM")
        assert took < ENDS_SECONDS
        assert not is_there(child)
        home.up()
        again = Conversation(person_of(home), thread.id)  # the keeper, which kept the sign-in, ended too
        assert (await again.ended(prompted["operation"]))["stop"] == "interrupted"


# An agent of ours that uses our own tools


@pytest.fixture(scope="module", params=["http", "stdio"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def lender(transport: str) -> Iterator[Person]:
    """At a daemon whose agent can reach our tools by this transport alone."""
    capabilities = CAPABILITIES if transport == "http" else STDIO_ONLY
    with running_daemon(agents_config(scripted=command(capabilities=capabilities))) as home:
        yield person_of(home)


async def test_an_agents_calls_belong_to_its_thread_and_prompt_and_are_asked_about(
    lender: Person, transport: str, workspace: Path
) -> None:
    thread = await open_thread(lender, workspace)
    prompted = await thread.prompt(
        {"mcp": "write_file", "arguments": {"path": "made.txt", "content": "by an agent\n"}, "as": "m"},
        {"tell": "m"},
    )

    question = await lender.question("made.txt")
    call = await lender.call(question["call_id"])
    assert call["caller"]["door"] == transport
    assert (call["caller"]["client"], call["caller"]["workspace"]) == ("scripted", str(workspace))
    assert (call["caller"]["thread"], call["caller"]["operation"]) == (thread.id, prompted["operation"])
    assert call["thread"] == thread.id
    (await lender.answer(question, "allow")).raise_for_status()

    answer = await thread.ended(prompted["operation"])
    assert (workspace / "made.txt").read_text() == "by an agent\n"
    assert '"status": "done"' in text_of(answer) or '"status":"done"' in text_of(answer)
    assert [part["data"]["call"] for part in parts_of(answer, "call")] == [question["call_id"]]


async def test_a_call_that_waits_is_withdrawn_when_its_prompt_is_cancelled(
    lender: Person, workspace: Path
) -> None:
    thread = await open_thread(lender, workspace)
    prompted = await thread.prompt(
        {"mcp": "write_file", "arguments": {"path": "never.txt", "content": "x"}, "as": "m"}
    )
    question = await lender.question("never.txt")

    assert (await lender.post(f"operations/{prompted['operation']}/cancel"))["won"]

    assert (await lender.settled(question["call_id"]))["status"] == "cancelled"
    assert (await thread.ended(prompted["operation"]))["stop"] == "cancelled"
    assert await lender.get("approvals", open=True) == []
    assert not (workspace / "never.txt").exists()


async def test_what_was_lent_is_good_for_calls_alone_and_dies_with_the_daemon(
    workspace: Path,
) -> None:
    """Over stdio; tests/safety has the same over HTTP."""
    with running_daemon(agents_config(scripted=command(capabilities=STDIO_ONLY))) as home:
        person = person_of(home)
        thread = await open_thread(person, workspace)
        (server,) = reported_json(await thread.act({"tell_session": True}))["mcpServers"]
        bearer = _bearer(server)
        over_http = await run_in_thread(lambda: _lists_tools(home.url, bearer))
        assert over_http == 200
        agent = Person(home, bearer)
        for path in ("state", "threads", f"threads/{thread.id}", "approvals", "events"):
            assert (await agent.ask("GET", path)).status_code == 401, path
        assert await person.get("credentials") == []

        assert (await person.ask("DELETE", thread.path)).status_code == 204
        assert await run_in_thread(lambda: _lists_tools(home.url, bearer)) == 401

        other = await open_thread(person, workspace)
        (server,) = reported_json(await other.act({"tell_session": True}))["mcpServers"]
        bearer = _bearer(server)
        assert await run_in_thread(lambda: _lists_tools(home.url, bearer)) == 200
        await person.post("down", keep_terminals=True)
        await until(lambda: not home.is_ready())
        home.up()
        assert await run_in_thread(lambda: _lists_tools(home.url, bearer)) == 401
        with closing(connect(home.places, start=False)) as sock, pytest.raises(HelloRefused) as refused:
            say_hello(sock, "mcp", credential=bearer)
        assert "no longer good" in str(refused.value)


def _bearer(server: Json) -> str:
    (lent,) = [each for each in server["env"] if each["name"] == "HANDRAIL_CREDENTIAL"]
    return lent["value"]


def _lists_tools(url: str, bearer: str) -> int:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "application/json, text/event-stream"}
    return httpx.post(f"{url}/mcp", json=body, headers=headers, timeout=20).status_code


async def test_an_agent_cannot_reach_tools_that_are_not_for_it(
    shared_person: Person, workspace: Path
) -> None:
    thread = await open_thread(shared_person, workspace)
    names = reported_json(await thread.act({"mcp_list": True, "as": "m"}, {"tell": "m"}))
    assert "execute_command" in json.dumps(names)
    assert "agent_work" not in json.dumps(names)
    answer = await thread.act({"mcp": "agent_work", "arguments": {}, "as": "m"}, {"tell": "m"})
    assert re.search("no tool", text_of(answer), re.I)
