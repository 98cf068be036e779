"""All servers of a session, and what the model is offered of them."""

import re
from pathlib import Path

import pytest
from tests.support.agent_toolset import connected_servers, run_tool, stdio_server

from handrail.own_agent.tools.toolset import LONGEST_NAME, tool_name


async def test_a_program_s_tools_are_offered_under_its_name_and_work(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        tools = servers.tools
        said = await run_tool(tools["somebody__echo"], text="hello")

    assert {"somebody__echo", "somebody__raises", "update_plan", "read_output"} <= tools.keys()
    assert tools["somebody__echo"].definition.parameters_json_schema["required"] == ["text"]
    assert tools["somebody__echo"].definition.description == "Say the same again."
    assert (said.text, said.failed, said.ended) == ("hello", False, "done")
    assert "Use echo for everything." in servers.instructions
    assert servers.problems == []


async def test_two_servers_with_tools_of_one_name_both_have_theirs(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log, name="a b"), stdio_server(log, name="c")) as servers:
        first = await run_tool(servers.tools["a_b__echo"], text="first")
        second = await run_tool(servers.tools["c__echo"], text="second")

    assert (first.text, second.text) == ("first", "second")


@pytest.mark.parametrize("tool", ["search", "sök.allt", "x" * 200])
def test_a_name_is_one_that_every_provider_takes(tool: str) -> None:
    assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}", tool_name("git hub", tool))


def test_long_names_with_the_same_beginning_stay_apart() -> None:
    assert tool_name("a", "x" * 200 + "1") != tool_name("a", "x" * 200 + "2")
