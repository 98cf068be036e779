"""One server: called, given up, dead and back again; on stdio and over HTTP, in both generations."""

import json
import os
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
import pytest
from tests.support.agent_toolset import (
    connected_servers,
    descriptors,
    http_server,
    parallel_calls,
    read_log,
    run_tool,
    running_http_server,
    stdio_server,
    wait_for_port,
)
from tests.support.daemon_home import free_port, until

from handrail.own_agent.tools.agent_tool import Tool
from handrail.own_agent.tools.toolset import Servers

Way = Literal["ours", "stdio", "http", "old http"]
ways = pytest.mark.parametrize("way", ["ours", "stdio", "http", "old http"])


@asynccontextmanager
async def reached(root: Path, log: Path, way: Way) -> AsyncGenerator[Servers]:
    if way in {"ours", "stdio"}:
        name = "handrail" if way == "ours" else "somebody"
        async with connected_servers(root, stdio_server(log, name)) as servers:
            yield servers
        return
    port = free_port()
    with running_http_server(log, port, old=way == "old http"):
        await wait_for_port(port)
        async with connected_servers(root, http_server(port)) as servers:
            yield servers


def tools_of(servers: Servers) -> dict[str, Tool]:
    """The tools under the names of a server that is not ours."""
    return {f"somebody__{name.removeprefix('somebody__')}": tool for name, tool in servers.tools.items()}


@ways
async def test_a_call_that_is_given_up_returns_at_once_and_the_server_is_told(
    root: Path, log: Path, way: Way
) -> None:
    async with reached(root, log, way) as servers:
        tools = tools_of(servers)
        await run_tool(tools["somebody__echo"], text="warm")
        before = descriptors()
        async with parallel_calls() as hand:
            for name in ("a", "b", "c"):
                hand.begin(tools["somebody__waits"], name=name)
            await until(lambda: read_log(log).count("began") == 3)
            took = await hand.give_up()
        await until(lambda: read_log(log).count("cancelled") == 3)
        after = await run_tool(tools["somebody__echo"], text="the line goes on")
        await until(lambda: descriptors() <= before)

    assert took < 1.0
    assert after.text == "the line goes on"
    assert read_log(log).count("up") == 1, "and it is the same server"


@ways
async def test_a_server_that_ignores_cancel_keeps_nobody_waiting(root: Path, log: Path, way: Way) -> None:
    async with reached(root, log, way) as servers:
        tools = tools_of(servers)
        async with parallel_calls() as hand:
            hand.begin(tools["somebody__ignores"], name="a", seconds=2.0)
            await until(lambda: "a began" in read_log(log))
            took = await hand.give_up()
        meanwhile = await run_tool(tools["somebody__echo"], text="meanwhile")
        at_work = "a ended" not in read_log(log)
        await until(lambda: "a ended" in read_log(log))
        afterwards = await run_tool(tools["somebody__echo"], text="afterwards")

    assert took < 1.0
    assert at_work
    assert (meanwhile.text, afterwards.text) == ("meanwhile", "afterwards")


@pytest.mark.parametrize("way", ["ours", "stdio", "http"])
async def test_a_server_that_hangs_altogether_keeps_nobody_waiting(root: Path, log: Path, way: Way) -> None:
    async with reached(root, log, way) as servers:
        tools = tools_of(servers)
        async with parallel_calls() as hand:
            hand.begin(tools["somebody__hangs"], name="a")
            await until(lambda: "a began" in read_log(log))
            for _ in range(3):  # more than its pipe holds, so that not even a cancel can be written
                hand.begin(tools["somebody__echo"], text="x" * 1_000_000)
            await anyio.wait_all_tasks_blocked()
            took = await hand.give_up()

    assert took < 1.0


async def test_a_tool_that_raises_is_a_failed_result_and_the_line_goes_on(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        raised = await run_tool(servers.tools["somebody__raises"])
        refused = await run_tool(servers.tools["somebody__refuses"])
        wrong = await run_tool(servers.tools["somebody__echo"], text=7)
        after = await run_tool(servers.tools["somebody__echo"], text="on")

    assert (raised.failed, raised.ended) == (True, "failed")
    assert "Error executing tool raises" in raised.text
    assert refused.text == "The MCP server “somebody” answered with an error: the wheel came off"
    assert refused.ended == wrong.ended == "failed"
    assert after.text == "on"


async def test_a_server_that_dies_is_there_again_on_its_next_use(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        tools = servers.tools
        await run_tool(tools["somebody__echo"], text="warm")
        before = descriptors()
        died = await run_tool(tools["somebody__dies"])
        again = await run_tool(tools["somebody__echo"], text="again")
        await until(lambda: descriptors() <= before)

    assert (died.failed, died.ended) == (True, "failed")
    assert "went away while this ran: it is not known how far it came" in died.text
    assert again.text == "again"
    assert read_log(log).count("up") == 2
    assert read_log(log).count("dies") == 1, "what may have been done is not done twice"
    assert servers.tools.keys() == tools.keys()


async def test_a_server_that_died_idle_is_started_again_by_whoever_comes_first_alone(
    root: Path, log: Path
) -> None:
    without = descriptors()
    async with connected_servers(root, stdio_server(log)) as servers:
        tools = servers.tools
        facts = json.loads((await run_tool(tools["somebody__environment"])).text)
        os.kill(facts["pid"], signal.SIGKILL)
        await until(servers._servers[0]._link.gone.is_set)  # pyright: ignore[reportPrivateUsage]
        await until(lambda: descriptors() <= without)

        async with parallel_calls() as hand:
            works = [hand.begin(tools["somebody__echo"], text=str(number)) for number in range(5)]
            said = [(await work.done()).text for work in works]

    assert said == ["0", "1", "2", "3", "4"]
    assert read_log(log).count("up") == 2


@pytest.mark.parametrize("old", [False, True])
async def test_a_server_over_http_that_was_started_anew_is_used_as_if_nothing_had_been(
    root: Path, log: Path, old: bool
) -> None:
    port = free_port()
    with running_http_server(log, port, old=old) as process:
        await wait_for_port(port)
        async with connected_servers(root, http_server(port)) as servers:
            tools = servers.tools
            first = await run_tool(tools["somebody__echo"], text="first")
            process.kill()
            process.wait()
            gone = await run_tool(tools["somebody__echo"], text="nobody")
            with running_http_server(log, port, old=old):
                await wait_for_port(port)
                second = await run_tool(tools["somebody__echo"], text="second")

    assert first.text == "first"
    assert gone.failed
    assert "nobody listens at its address" in gone.text
    assert second.text == "second"


@pytest.mark.parametrize("old", [False, True])
async def test_a_call_whose_server_dies_over_http_fails_and_is_not_made_again(
    root: Path, log: Path, old: bool
) -> None:
    port = free_port()
    with running_http_server(log, port, old=old):
        await wait_for_port(port)
        async with connected_servers(root, http_server(port)) as servers:
            died = await run_tool(servers.tools["somebody__dies"])

    assert died.failed
    assert "went away while this ran" in died.text
    assert read_log(log).count("dies") == 1


async def test_no_proxy_sees_what_is_said_to_this_machine(
    root: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async with reached(root, log, "http") as servers:
        said = await run_tool(servers.tools["somebody__echo"], text="straight")

    assert said.text == "straight"


@ways
async def test_giving_up_at_any_moment_breaks_nothing(root: Path, log: Path, way: Way) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    chance = random.Random(seed)

    async with reached(root, log, way) as servers:
        tools = tools_of(servers)
        await run_tool(tools["somebody__echo"], text="warm")
        before = descriptors()
        for number in range(60):
            async with parallel_calls() as hand:
                for tool in ("echo", "waits", "huge"):
                    hand.begin(tools[f"somebody__{tool}"], text="x", name=f"n{number}", lines=2_000)
                with anyio.move_on_after(chance.uniform(0, 0.03)):
                    await anyio.sleep_forever()
                assert await hand.give_up() < 1.0
        after = await run_tool(tools["somebody__echo"], text="the line goes on")
        await until(lambda: descriptors() <= before + 4)  # what HTTP keeps for later
        await until(lambda: read_log(log).count("began") == read_log(log).count("cancelled"))

    assert after.text == "the line goes on"
    assert read_log(log).count("up") == 1
