"""A session's tools with our own server among them: a real daemon, by its door and over HTTP."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
import pytest
from tests.support.agent_toolset import (
    SAMPLE_SERVER,
    ToolHost,
    descriptors,
    parallel_calls,
    read_log,
    run_tool,
)
from tests.support.daemon_home import BOUND, Home, find_processes, running_daemon, until
from tests.support.person_client import Person, person_of

from handrail.own_agent.acp_requests import HostServer, HttpServer, NamedValue, StdioServer, UnsupportedServer
from handrail.own_agent.tools.toolset import Toolset, open_toolset

Way = Literal["door", "http"]
ways = pytest.mark.parametrize("way", ["door", "http"])


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with running_daemon("[command]\nstop_grace = 0.3\n") as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture(autouse=True)
def leading_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_HOME", home.environment["HANDRAIL_HOME"])


async def given(way: Way, root: Path, person: Person) -> list[HostServer]:
    """What a host would hand over: nothing, where the agent is to find our door by itself."""
    if way == "door":
        return []
    credential = await person.credential(str(root))
    headers = [NamedValue(name="Authorization", value=f"Bearer {credential['bearer']}")]
    return [HttpServer(type="http", name="handrail", url=credential["url"], headers=headers)]


async def ready(toolset: Toolset) -> Toolset:
    with anyio.fail_after(BOUND):
        await toolset.ready()
    return toolset


@ways
async def test_our_own_tools_have_their_own_names_and_nobody_is_asked_twice(
    root: Path, person: Person, way: Way
) -> None:
    (root / "notes.txt").write_text("line one\n")
    listener = ToolHost()

    async with open_toolset(await given(way, root, person), str(root)) as toolset:
        tools = (await ready(toolset)).tools
        read = await run_tool(tools["read_file"], listener, path="notes.txt")

    assert {"execute_command", "edit_file", "wait_for_call", "update_plan", "read_output"} <= tools.keys()
    assert "approve" not in tools, "which other programs ask through"
    assert "line one" in read.text
    assert (read.ended, read.raw["status"], listener.asked) == ("done", "done", [])
    assert "wait_for_call" in toolset.instructions
    assert toolset.notes == []


@ways
async def test_what_a_person_answers_at_our_gate_is_the_result(root: Path, person: Person, way: Way) -> None:
    async with open_toolset(await given(way, root, person), str(root)) as toolset:
        tools = (await ready(toolset)).tools
        async with parallel_calls() as hand:
            write = hand.begin(tools["write_file"], path="made.txt", content="made\n")
            run = hand.begin(tools["execute_command"], command="sleep 61.1001")
            await person.allow("made.txt")
            await person.deny("61.1001", "not today")
            made, denied = await write.done(), await run.done()

    assert (made.failed, made.ended) == (False, "done")
    assert (root / "made.txt").read_text() == "made\n"
    assert (denied.failed, denied.ended) == (True, "denied")
    assert "not today" in denied.text


@ways
async def test_a_cancel_takes_the_command_and_the_open_question_with_it(
    root: Path, person: Person, way: Way
) -> None:
    async with open_toolset(await given(way, root, person), str(root)) as toolset:
        tools = (await ready(toolset)).tools
        async with parallel_calls() as hand:
            hand.begin(tools["execute_command"], command="sleep 61.2002")
            running = await person.allow("61.2002")
            await until(lambda: len(find_processes("61.2002")) > 0)
            hand.begin(tools["write_file"], path="never.txt", content="no\n")
            question = await person.question("never.txt")
            took = await hand.give_up()
            ran, waited = await person.settled(running), await person.settled(question["call_id"])
        await until(lambda: not find_processes("61.2002"))
        after = await run_tool(tools["list_files"])

    assert took < 1.0
    assert (ran["status"], ran["by"]) == ("cancelled", "client")
    assert (waited["status"], waited["by"]) == ("cancelled", "client")
    assert (await person.get(f"approvals/{question['id']}"))["status"] == "withdrawn"
    assert after.ended == "done", "the line goes on"


async def test_a_person_s_cancel_of_a_call_is_told_as_such(root: Path, person: Person) -> None:
    async with open_toolset([], str(root)) as toolset:
        tools = (await ready(toolset)).tools
        async with parallel_calls() as hand:
            work = hand.begin(tools["execute_command"], command="sleep 61.3003")
            call = await person.allow("61.3003")
            await until(lambda: len(find_processes("61.3003")) > 0)
            await person.cancel(call)
            cancelled = await work.done()

    assert (cancelled.failed, cancelled.ended, cancelled.raw["status"]) == (True, "cancelled", "cancelled")


async def test_a_call_that_is_handed_back_is_passed_on_as_it_is(root: Path, person: Person) -> None:
    async with open_toolset([], str(root)) as toolset:
        tools = (await ready(toolset)).tools
        async with parallel_calls() as hand:
            work = hand.begin(tools["execute_command"], command="sleep 61.4004", wait_seconds=1)
            await person.allow("61.4004")
            back = await work.done()
            await person.cancel(back.raw["call_id"])

    assert (back.failed, back.ended, back.raw["status"]) == (False, "done", "running")
    assert back.raw["call_id"] in back.text


async def test_a_session_has_its_servers_at_once_and_leaves_nothing_of_them(
    root: Path, person: Person, tmp_path: Path
) -> None:
    before = descriptors()
    log = tmp_path / "log"
    env = [NamedValue(name="GIVEN", value="by name")]
    servers: list[HostServer] = [
        StdioServer(name="some body", command=sys.executable, args=[str(SAMPLE_SERVER), str(log)], env=env),
        StdioServer(name="missing", command="/no/such/program", args=[], env=[]),
        StdioServer(name="mute", command="/bin/true", args=[], env=[]),
        HttpServer(type="http", name="nowhere", url="http://127.0.0.1:9/mcp", headers=[]),
        HttpServer(type="http", name="stranger", url=f"{person.home.url}/mcp", headers=[]),
        UnsupportedServer(type="sse", name="old"),
    ]

    async with open_toolset(servers, str(root)) as toolset:
        early = dict(toolset.tools)
        tools = (await ready(toolset)).tools
        said = await run_tool(tools["some_body__echo"], text="hello")
    await until(lambda: descriptors() <= before)

    assert early == {}
    assert "read_file" in tools
    assert said.text == "hello"
    assert toolset.notes == [
        "The MCP server “old” is left out: this agent speaks to servers on stdio and streamable HTTP alone.",
        "The MCP server “missing” is left out: No such file or directory: /no/such/program.",
        "The MCP server “mute” is left out: it ended before it had answered.",
        "The MCP server “nowhere” is left out: nobody listens at its address.",
        "The MCP server “stranger” is left out: it answers with HTTP 401 (not signed in).",
    ]
    assert read_log(log).splitlines()[-1] == "down"
    assert find_processes(f"--workspace\0{root}") == []


@ways
async def test_a_daemon_that_was_killed_and_is_back_is_used_as_before(
    root: Path, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_daemon() as own:
        monkeypatch.setenv("HANDRAIL_HOME", own.environment["HANDRAIL_HOME"])
        somebody = await anyio.to_thread.run_sync(person_of, own)
        async with open_toolset(await given(way, root, somebody), str(root)) as toolset:
            tools = (await ready(toolset)).tools
            before = await run_tool(tools["list_files"])
            await anyio.to_thread.run_sync(own.kill)
            await anyio.to_thread.run_sync(own.up)
            after = await run_tool(tools["list_files"])

    assert (before.ended, after.ended) == ("done", "done")


async def test_a_session_that_is_closed_while_it_connects_leaves_nothing(root: Path) -> None:
    before = descriptors()

    async with open_toolset([], str(root)) as toolset:
        with anyio.move_on_after(0.05):
            await toolset.ready()
    await until(lambda: descriptors() <= before)

    await until(lambda: not find_processes(f"--workspace\0{root}"))


def test_starting_the_agent_imports_nothing_slow() -> None:
    program = (
        "import sys; import handrail.own_agent.acp_server; "
        "print({'acp', 'mcp', 'mcp_types', 'pydantic_ai'} & sys.modules.keys() or 'nothing')"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=BOUND
    )

    assert (done.stdout, done.stderr) == ("nothing\n", "")
