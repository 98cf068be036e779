"""Our own small MCP client, which speaks to our own server; against servers that send more than ours does."""

import subprocess
import sys
from pathlib import Path

from tests.support.agent_toolset import HANDMADE_SERVER, ToolHost, connected_servers, run_tool, stdio_server
from tests.support.daemon_home import BOUND, until

from handrail.own_agent.tools.mcp_session import MOST_TOOLS
from handrail.own_agent.tools.server_config import OURS, Stdio


def handmade(way: str) -> Stdio:
    return Stdio(name=OURS, command=(sys.executable, "-P", str(HANDMADE_SERVER), way))


async def test_progress_new_tools_and_instructions_arrive(root: Path, log: Path) -> None:
    host = ToolHost()
    async with connected_servers(root, stdio_server(log, OURS)) as servers:
        tools, instructions = servers.tools, servers.instructions
        progressed = await run_tool(tools["progresses"], host)
        await run_tool(tools["grows"])
        await until(lambda: "grown" in servers.tools)
        grown = await run_tool(servers.tools["grown"])

    assert instructions == "About the tools of handrail: Use echo for everything."
    assert [words for _, words in host.heard] == ["one of three", "2 of 3"]
    assert (progressed.text, grown.text) == ("three", "grown")


async def test_every_kind_of_content_and_error_is_converted(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log, OURS)) as servers:
        tools = servers.tools
        shown = await run_tool(tools["shows"], count=1)
        refused = await run_tool(tools["refuses"])
        denied = await run_tool(tools["denied"])
        structured = await run_tool(tools["structured"])

    assert len(shown.images) == 1
    assert shown.text.splitlines() == [
        "Here it is.",
        "[an image that cannot be read]",
        "[something of type image/x-odd, which cannot be shown here]",
        "[a sound of type audio/wav, which cannot be heard here]",
        "[the page: https://example.test/page]",
    ]
    assert refused.text == "The MCP server “handrail” answered with an error: the wheel came off"
    assert (denied.ended, denied.text) == ("denied", "Denied.")
    assert structured.raw["answer"] == 42


async def test_a_server_that_dies_during_a_call_is_started_for_the_next_one(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log, OURS)) as servers:
        tools = servers.tools
        died = await run_tool(tools["dies"])
        again = await run_tool(tools["echo"], text="again")

    assert "went away while this ran: it is not known how far it came" in died.text
    assert again.text == "again"


async def test_lines_that_are_no_messages_and_answers_without_content_do_no_harm(root: Path) -> None:
    async with connected_servers(root, handmade("chatty")) as servers:
        odd = await run_tool(servers.tools["tool0"])

    assert odd.text == "The MCP server “handrail” answered with something that the protocol does not have."


async def test_a_list_of_tools_without_an_end_has_one(root: Path) -> None:
    async with connected_servers(root, handmade("endless")) as servers:
        assert len([name for name in servers.tools if name.startswith("tool")]) == MOST_TOOLS


def test_a_session_with_our_own_server_does_not_import_the_sdk(root: Path, log: Path) -> None:
    program = (
        "import sys, anyio\n"
        "from handrail.own_agent.tools.server_config import Stdio\n"
        "from handrail.own_agent.tools.toolset import Servers\n"
        "async def main():\n"
        "    async with anyio.create_task_group() as group:\n"
        "        servers = Servers([Stdio(name='handrail', command=tuple(sys.argv[1:]))], '.', group)\n"
        "        await servers.settled()\n"
        "        print('echo' in servers.tools, {'mcp', 'mcp_types', 'pydantic_ai'} & sys.modules.keys() or 'nothing')\n"
        "        group.cancel_scope.cancel()\n"
        "anyio.run(main)"
    )

    argv = [sys.executable, "-P", "-c", program, *stdio_server(log).command]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=BOUND, cwd=root)

    assert (done.stdout, done.stderr) == ("True nothing\n", "")
