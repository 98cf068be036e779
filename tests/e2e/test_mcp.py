"""MCP as clients speak it: both generations over both transports, leaving in every way, and bad input."""

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp.shared.exceptions import MCPError
from tests.support.daemon_home import BOUND, Home, find_processes, list_names, until
from tests.support.mcp_client import Generation, Transport, agent
from tests.support.person_client import Person

from handrail.server.mcp._response_streams import RESUME_SECONDS, RETRY_MILLISECONDS

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no_such_tool", {}, "no tool"),
    ("read_file", {}, "`path` is required"),
    ("read_file", {"path": 7}, "`path`"),
    ("read_file", {"path": "notes.txt", "colour": "red"}, "`colour` is not an input"),
    ("read_file", {"path": "missing.txt"}, "missing.txt"),
    ("read_file", {"path": "folder"}, "directory"),
    ("read_file", {"path": "binary"}, "binary"),
    ("read_file", {"path": "a\0b"}, "NUL"),
    ("edit_file", {"path": "missing.txt", "old_string": "a", "new_string": "b"}, "write_file"),
    ("edit_file", {"path": "notes.txt", "old_string": "absent", "new_string": "b"}, "not found"),
    ("apply_diff", {"path": "notes.txt", "diff": "not a diff"}, "diff"),
    ("search_content", {"pattern": "("}, "("),
    ("execute_command", {"command": "x" * 200_000}, "100,000"),
    ("execute_command", {"command": " "}, "empty"),
    ("execute_command", {"command": "true", "cwd": "missing"}, "missing"),
    ("execute_command", {"command": "true", "wait_seconds": -1}, "`wait_seconds`"),
    ("get_call", {"call_id": "c0000000000"}, "no call c0000000000"),
    ("wait_for_call", {"call_id": "../../etc/passwd"}, "no call"),
]
"""A tool, what it is wrongly given, and what its sentence must speak of."""

transports = pytest.mark.parametrize("transport", ["stdio", "http"])
generations = pytest.mark.parametrize("generation", ["legacy", "2026-07-28"])


@transports
@generations
async def test_a_tool_is_used_in_both_generations_over_both_transports(
    shared_home: Home, shared_person: Person, workspace: Path, transport: Transport, generation: Generation
) -> None:
    (workspace / "notes.txt").write_text("line one\n")

    async with agent(
        shared_home, workspace, shared_person, transport=transport, generation=generation, name="Zed"
    ) as client:
        read = await client.use("read_file", path="notes.txt")
        asked = client.ask("execute_command", command="pwd")
        call = await shared_person.allow("pwd")
        ran = await asked.told()
        version = client.client.protocol_version
    caller = (await shared_person.call(call))["caller"]

    assert (version == "2026-07-28") is (generation == "2026-07-28")
    assert read.data["content"] == "line one\n"
    assert ran.data["output"] == f"{workspace}\n"
    assert ran.data["duration_ms"] < 2000
    assert (caller["client"], caller["workspace"]) == ("Zed", str(workspace))
    assert caller["door"] == transport


@pytest.mark.parametrize("version", ["2026-07-28", None])
async def test_a_bridge_cancels_a_request_over_http_by_its_id(
    shared_home: Home, shared_person: Person, workspace: Path, version: str | None
) -> None:
    bearer = (await shared_person.credential(str(workspace)))["bearer"]
    other = (await shared_person.credential(str(workspace)))["bearer"]
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bridge", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    arguments = {"command": "sleep 68.1111"}
    params = {"name": "execute_command", "arguments": arguments, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    accept = {"Accept": "application/json, text/event-stream"}
    modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_command"}
    posted = {} if version is None else {"MCP-Protocol-Version": version}

    async with (
        httpx.AsyncClient(base_url=shared_home.url, headers=accept, timeout=BOUND, verify=False) as http,
        anyio.create_task_group() as group,
    ):

        async def post(bearer: str, message: object, headers: dict[str, str]) -> int:
            signed = {"Authorization": f"Bearer {bearer}", **headers}
            return (await http.post("/mcp", json=message, headers=signed)).status_code

        group.start_soon(post, bearer, call, modern)
        opened = await shared_person.allow("68.1111")
        await until(lambda: bool(find_processes("sleep\x0068.1111")))
        assert await post(other, cancel, posted) == 202, "of another credential: ignored"
        assert (await shared_person.call(opened))["status"] == "running"
        assert await post(bearer, cancel, posted) == 202
        settled = await shared_person.settled(opened)
        await until(lambda: not find_processes("sleep\x0068.1111"))
        assert (settled["status"], settled["by"]) == ("cancelled", "client")


@transports
@generations
async def test_a_clients_cancel_ends_the_call_and_its_whole_tree(
    shared_home: Home, shared_person: Person, workspace: Path, transport: Transport, generation: Generation
) -> None:
    async with agent(
        shared_home, workspace, shared_person, transport=transport, generation=generation
    ) as client:
        asked = client.ask("execute_command", command="echo seen; setsid sleep 61.4711 & sleep 61.4711")
        call = await shared_person.allow("61.4711")
        await until(lambda: len(find_processes("sleep\x0061.4711")) == 2)
        await shared_person.has_printed(call)
        asked.scope.cancel()
        settled = await shared_person.settled(call)
        still = await client.use("list_calls")

    assert (settled["status"], settled["by"]) == ("cancelled", "client")
    assert settled["message"] == "Cancelled by the client"
    assert settled["result"]["data"]["output"] == "seen\n"
    assert still.status == "done", "the line goes on"
    await until(lambda: not find_processes("61.4711"))


@transports
@generations
async def test_a_client_that_goes_away_takes_the_calls_it_waits_for_with_it(
    shared_home: Home, shared_person: Person, workspace: Path, transport: Transport, generation: Generation
) -> None:
    async with agent(
        shared_home, workspace, shared_person, transport=transport, generation=generation
    ) as client:
        client.ask("execute_command", command="sleep 61.5822", wait_seconds=50)
        call = await shared_person.allow("61.5822")
        await until(lambda: len(find_processes("61.5822")) > 0)
        client.ask("write_file", path="never.txt", content="no\n")
        question = await shared_person.question("never.txt")
    ran, waited = await shared_person.settled(call), await shared_person.settled(question["call_id"])

    assert (ran["status"], ran["by"]) == ("cancelled", "client")
    assert (waited["status"], waited["by"]) == ("cancelled", "client")
    assert (await shared_person.get(f"approvals/{question['id']}"))["status"] == "withdrawn"
    await until(lambda: not find_processes("61.5822"))
    assert list_names(workspace) == []


async def test_a_door_that_is_killed_takes_the_calls_it_waits_for_with_it(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("execute_command", command="sleep 61.6933", wait_seconds=50)
        call = await shared_person.allow("61.6933")
        await until(lambda: len(find_processes("61.6933")) > 0)
        (door,) = find_processes(f"--workspace\0{workspace}")
        shared_home.signal(door, 9)
        settled = await shared_person.settled(call)
        with anyio.fail_after(BOUND):
            await asked.done.wait()

    assert (settled["status"], settled["by"]) == ("cancelled", "client")
    assert isinstance(asked.came, MCPError)
    await until(lambda: not find_processes("61.6933"))


@asynccontextmanager
async def raw_client(
    person: Person, workspace: Path, version: str
) -> AsyncGenerator[Callable[..., AbstractAsyncContextManager[httpx.Response]]]:
    """A session over HTTP, without an SDK: a function that sends to it and streams what comes back."""
    credential = await person.credential(str(workspace))
    headers = {
        "Authorization": f"Bearer {credential['bearer']}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
    }
    info = {"name": "raw", "version": "1"}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
    async with httpx.AsyncClient(headers=headers, timeout=2 * BOUND) as http:
        first = await http.post(credential["url"], json=request(1, "initialize", hello))
        http.headers["Mcp-Session-Id"] = first.headers["mcp-session-id"]
        await http.post(
            credential["url"], json={"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
        )

        def send(method: str, **more: Any) -> AbstractAsyncContextManager[httpx.Response]:
            return http.stream(method, credential["url"], **more)

        yield send


def run_command(id: int, command: str) -> dict[str, Any]:
    use = {"name": "execute_command", "arguments": {"command": command, "wait_seconds": 50}}
    return request(id, "tools/call", use)


async def test_a_closed_http_stream_ends_the_call_that_was_waited_for_on_it(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with raw_client(shared_person, workspace, "2025-06-18") as send:
        async with send("POST", json=run_command(2, "sleep 61.7044")) as stream:
            assert stream.status_code == 200
            call = await shared_person.allow("61.7044")
            await until(lambda: len(find_processes("61.7044")) > 0)
        settled = await shared_person.settled(call)

    assert (settled["status"], settled["by"]) == ("cancelled", "client")
    await until(lambda: not find_processes("61.7044"))


async def test_a_lost_http_stream_is_resumed_and_only_a_client_that_stays_away_ends_its_call(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    """MCP 2025-11-25: a lost connection cancels nothing, and `Last-Event-ID` gets what was missed."""
    waits = "until [ -e go ]; do sleep 0.0561; done; echo arrived"
    async with raw_client(shared_person, workspace, "2025-11-25") as send:
        async with send("POST", json=run_command(2, waits)) as stream:
            first = await anext(read_events(stream))
            call = await shared_person.allow("0.0561")
            theirs = stream.request.headers["mcp-session-id"]
        again = {"Last-Event-ID": first["id"]}
        async with raw_client(shared_person, workspace, "2025-11-25") as other:
            async with other("GET", headers={**again, "mcp-session-id": theirs}) as stolen:
                assert stolen.status_code == 404, "a session belongs to the credential that opened it"
            async with other("GET", headers=again) as own:
                assert [event async for event in read_events(own)] == [], "an event belongs to its session"
        async with send("GET", headers=again):  # resumed, and lost once more
            pass
        async with (
            raw_client(shared_person, workspace, "2025-11-25") as other,
            other("GET", headers=again) as stream,
        ):
            stolen = [event async for event in read_events(stream)]
        (workspace / "go").touch()
        settled = await shared_person.settled(call)
        async with send("GET", headers=again) as stream:
            came = [event async for event in read_events(stream)]
        async with send("GET", headers=again) as stream:
            later = [event async for event in read_events(stream)]

        async with send("POST", json=run_command(3, "sleep 61.7045")):
            abandoned = await shared_person.allow("61.7045")
            await until(lambda: len(find_processes("61.7045")) > 0)
            left = time.monotonic()
        cancelled = await shared_person.settled(abandoned)

    assert (first["data"], first["retry"]) == ("", str(RETRY_MILLISECONDS))
    assert stolen == [], "another session gets nothing"
    assert settled["status"] == "done"
    result = json.loads(came[-1]["data"])
    assert result["id"] == 2
    assert result["result"]["structuredContent"]["output"] == "arrived\n"
    assert later == [], "what was received is not kept"
    assert (cancelled["status"], cancelled["by"]) == ("cancelled", "client")
    assert time.monotonic() - left >= RESUME_SECONDS
    await until(lambda: not find_processes("61.7045"))


async def read_events(stream: httpx.Response) -> AsyncGenerator[dict[str, str]]:
    """The events of a stream, each with its fields."""
    event: dict[str, str] = {}
    async for line in stream.aiter_lines():
        if not line and event:
            yield event
            event = {}
        elif not line.startswith(":") and line:
            name, _, value = line.partition(":")
            event[name] = value.strip()


async def test_a_call_that_was_handed_back_goes_on_when_its_client_leaves(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("execute_command", command="sleep 1; echo late", background=True)
        call = await shared_person.allow("echo late")
        assert (await asked.told()).status == "running"
    settled = await shared_person.settled(call)
    async with agent(shared_home, workspace, shared_person) as another:
        told = await another.use("get_call", call_id=call)

    assert settled["status"] == "done"
    assert told.data["call"]["result"]["output"] == "late\n", "the mailbox is the workspace's"


async def test_a_client_hears_soon_that_its_call_waits_for_a_person(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    beats: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        beats.append((progress, message))

    async with agent(shared_home, workspace) as client, anyio.create_task_group() as group:
        group.start_soon(lambda: client.use("write_file", note, path="a.txt", content="a\n"))
        call = (await shared_person.question("a.txt"))["call_id"]
        await until(lambda: bool(beats), within=9)  # before the first sign of life that a running call gives
        await shared_person.cancel(call)

    (_, words), *_ = beats
    assert words is not None
    assert "waiting for a person" in words


@transports
async def test_bad_input_gets_a_sentence_and_a_record(
    shared_home: Home, shared_person: Person, workspace: Path, transport: Transport
) -> None:
    (workspace / "notes.txt").write_text("line one\n")
    (workspace / "folder").mkdir()
    (workspace / "binary").write_bytes(bytes(range(256)) * 20)

    async with agent(shared_home, workspace, shared_person, transport=transport) as client:
        for tool, given, says in BAD:
            told = await client.use(tool, **given)
            recorded = await shared_person.call(told.call)

            assert (told.status, told.is_error) == ("failed", True), told
            assert says in told.text
            assert "Traceback" not in told.text
            assert "fault in Handrail" not in told.text
            assert told.data["reason"] == told.text
            assert (recorded["status"], recorded["message"]) == ("failed", told.text)


async def test_a_path_outside_the_workspace_asks(
    shared_home: Home, shared_person: Person, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("outside\n")
    async with agent(shared_home, workspace) as client:
        asked = client.ask("read_file", path="../secret.txt")
        question = await shared_person.question("secret.txt")
        await shared_person.answer(question, "allow")
        told = await asked.told()

    assert question["risk"] == "high"
    assert question["preview"]["path"] == str(tmp_path / "secret.txt")
    assert told.data["content"] == "outside\n"


def request(id: int, method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
