"""Greeting servers of every make, and hearing what they offer."""

import os
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.support.agent_toolset import (
    HANDMADE_SERVER,
    ToolHost,
    connected_servers,
    descriptors,
    run_tool,
    stdio_server,
)
from tests.support.daemon_home import until

from handrail.own_agent.tools.mcp_session import MOST_TOOLS
from handrail.own_agent.tools.sdk_session import is_local
from handrail.own_agent.tools.server_config import Stdio


def plain(way: str) -> Stdio:
    return Stdio(name="plain", command=(sys.executable, "-P", str(HANDMADE_SERVER), way))


async def test_a_program_of_the_newer_generation_alone_is_greeted_in_it(root: Path) -> None:
    async with connected_servers(root, plain("new")) as servers:
        said = await run_tool(servers.tools["plain__tool0"])

    assert (said.text, servers.problems) == ("plainly", [])


async def test_what_a_program_prints_that_is_no_message_is_overheard(root: Path) -> None:
    async with connected_servers(root, plain("chatty")) as servers:
        odd = await run_tool(servers.tools["plain__tool0"])

    assert odd.failed
    assert odd.text == "The MCP server “plain” answered with something that the protocol does not have."


async def test_a_list_of_tools_without_an_end_has_one(root: Path) -> None:
    async with connected_servers(root, plain("endless")) as servers:
        tools = servers.tools

    assert len([name for name in tools if name.startswith("plain__")]) == MOST_TOOLS


async def test_tools_that_come_later_are_offered_then(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        before = servers.tools
        await run_tool(before["somebody__grows"])
        await until(lambda: "somebody__grown" in servers.tools)
        said = await run_tool(servers.tools["somebody__grown"])

    assert "somebody__grown" not in before
    assert said.text == "grown"


async def test_our_own_server_is_tried_again_where_it_could_not_be_reached(root: Path, log: Path) -> None:
    there = root / "there"
    command = f'test -e there && exec "{sys.executable}" "{stdio_server(log).command[2]}" "{log}"'
    late = Stdio(name="handrail", command=("/bin/sh", "-c", command))

    async with connected_servers(root, late) as servers:
        early, problems = servers.tools, servers.problems
        there.touch()
        await servers.settled()
        said = await run_tool(servers.tools["echo"], ToolHost(), text="here")

    assert "echo" not in early
    assert problems == ["The MCP server “handrail” is left out: it ended before it had answered."]
    assert said.text == "here"


async def test_a_server_that_is_slow_to_start_is_waited_for_once_and_comes_later(
    root: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.own_agent.tools.mcp_servers.PATIENCE", 2.0)
    gate = root / "gate"
    os.mkfifo(gate)
    command = f'read _ < gate; exec "{sys.executable}" "{stdio_server(log).command[2]}" "{log}"'

    async with connected_servers(root, Stdio(name="slow", command=("/bin/sh", "-c", command))) as servers:
        early, problems = servers.tools, servers.problems
        with anyio.fail_after(1.0):
            await servers.settled()
        await anyio.to_thread.run_sync(gate.write_text, "\n")
        await until(lambda: "slow__echo" in servers.tools)
        said = await run_tool(servers.tools["slow__echo"], text="here")

    assert "slow__echo" not in early
    assert problems == ["The MCP server “slow” is left out: it has not answered yet."]
    assert said.text == "here"
    assert servers.problems == []


async def test_a_server_that_never_answers_is_given_up_and_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.own_agent.tools.mcp_servers.CONNECT_SECONDS", 0.2)
    before = descriptors()

    async with connected_servers(root, Stdio(name="mute", command=("/bin/sleep", "600.5"))) as servers:
        problems = servers.problems
        await until(lambda: descriptors() <= before)

    assert problems == ["The MCP server “mute” is left out: it did not answer within 0.2 s."]


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:7433/mcp", True),
        ("http://[::1]:7433/mcp", True),
        ("http://localhost/mcp", True),
        ("https://example.test/mcp", False),
        ("http://127.0.0.1.example.test/mcp", False),
    ],
)
def test_no_proxy_stands_between_us_and_this_machine(url: str, local: bool) -> None:
    assert is_local(url) is local
