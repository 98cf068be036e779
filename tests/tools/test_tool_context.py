"""The terminal tools through the SDK's own client: as an agent uses them, many at once, and to the last byte."""

import base64
import hashlib
import json
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from tests.support.hook_world import build_hooks
from tests.support.tool_runner import TerminalToolRunner, terminal_tools

from handrail.server.mcp.mcp_server import ConnectionHooks, McpServers
from handrail.store.values import Caller
from handrail.terminal.keeper_client import KeeperError

pytestmark = pytest.mark.anyio
LONG = 60.0
TERMINALS = 50
READINGS = 1000


@asynccontextmanager
async def agent(home: Path, caller: Caller) -> AsyncGenerator[tuple[TerminalToolRunner, Client]]:
    async with terminal_tools(home, caller) as at:
        server = McpServers(at.gate, build_hooks(at.gate), LONG).server(
            ConnectionHooks(caller=lambda _context: caller)
        )
        with anyio.fail_after(LONG):
            async with Client(server, mode="legacy") as client:
                yield at, client


async def use(client: Client, tool: str, **input: Any) -> dict[str, Any]:
    result: Any = await client.call_tool(tool, input)
    assert not result.is_error, result
    return result.structured_content


async def test_an_agent_opens_runs_reads_searches_types_waits_and_closes(
    home: Path, root: Path, caller: Caller
) -> None:
    async with agent(home, caller) as (_, client):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        opened = await use(client, "create_tracked_terminal", name="work")
        own = opened["terminal_id"]
        ran = await use(client, "execute_command", terminal_id=own, command="seq 3; false")
        await use(client, "send_to_terminal", terminalId=own, text="cat")
        await use(client, "wait_for_terminal", terminalId=own, until="idle", value=0.5)
        await use(client, "send_to_terminal", terminalId=own, text="echoed")
        woke = await use(client, "wait_for_terminal", terminalId=own, until="pattern", value="echoed\nechoed")
        found = await use(client, "search_terminal_buffer", terminalId=own, pattern="^3$")
        listed = await use(client, "list_tracked_terminals", runningOnly=True)
        await use(client, "send_to_terminal", terminalId=own, keys=["ctrl-d"])
        back = await use(client, "wait_for_terminal", terminalId=own, until="prompt")
        closed = await use(client, "close_terminal", terminalId=own)
        read = await use(client, "get_terminal_buffer", terminalId=own)
    assert {"create_tracked_terminal", "wait_for_terminal", "execute_command"} <= tools
    assert (ran["status"], ran["output"], ran["exit_code"]) == ("done", "1\n2\n3\n", 1)
    assert (woke["woke"], len(found["matches"])) == ("pattern", 1)
    assert [(item["id"], item["foreground"]["name"]) for item in listed["terminals"]] == [(own, "cat")]
    assert (back["woke"], back["detail"]["exit_code"]) == ("prompt", 0)
    assert closed["was_running"]
    assert (read["running"], "echoed" in read["output"]) == (False, True)


async def test_fifty_terminals_are_used_at_once(home: Path, caller: Caller) -> None:
    async with agent(home, caller) as (at, client):
        told: dict[str, str] = {}

        async def work(number: int) -> None:
            opened = await use(client, "create_tracked_terminal", shellArgs=["--norc"])
            ran = await use(
                client,
                "execute_command",
                terminal_id=opened["terminal_id"],
                command=f"echo $(({number} * 1000))",
            )
            told[opened["terminal_id"]] = ran["output"]

        async with anyio.create_task_group() as group:
            for number in range(TERMINALS):
                group.start_soon(work, number)
        assert len(at.terminals.live) == TERMINALS
    assert sorted(int(output) for output in told.values()) == [n * 1000 for n in range(TERMINALS)]


async def test_a_thousand_readings_by_cursor_during_output_join_to_what_was_written(
    home: Path, root: Path, caller: Caller
) -> None:
    program = (
        "import hashlib, os, random, tty; tty.setraw(0)\n"
        "sum = hashlib.sha256(); chance = random.Random(7)\n"
        f"for n in range({READINGS}):\n"
        "    piece = chance.randbytes(chance.randrange(500)) if n % 3 else f'line {n} ä€🎉\\n'.encode()\n"
        "    sum.update(piece); os.write(1, piece); os.read(0, 1)\n"
        "open('sum', 'w').write(sum.hexdigest())\n"
    )
    async with agent(home, caller) as (at, client):
        opened = await use(
            client, "create_tracked_terminal", shellPath=sys.executable, shellArgs=["-c", program]
        )
        terminal = at.terminals.get(opened["terminal_id"])
        assert terminal is not None
        joined, after, count = hashlib.sha256(), 0, 0
        while True:
            read = await use(client, "get_terminal_buffer", terminalId=terminal.id, after=after, mode="raw")
            exact = read.get("output_base64")
            joined.update(base64.b64decode(exact) if exact is not None else read["output"].encode())
            after, count = read["next"], count + 1
            if terminal.exit is not None and not read["running"] and after == read["end"]:
                break
            with suppress(KeeperError):  # it has had its last
                await terminal.write(b"\n")
    assert joined.hexdigest() == (root / "sum").read_text()
    assert count >= READINGS


async def test_a_shell_that_crashes_and_much_output_are_handled(home: Path, caller: Caller) -> None:
    async with agent(home, caller) as (_, client):
        opened = await use(client, "create_tracked_terminal")
        own = opened["terminal_id"]
        much = await use(client, "execute_command", terminal_id=own, command="seq 1 400000", output_tail=1)
        crashed = await use(client, "execute_command", terminal_id=own, command="kill -SEGV $$")
        listed = await use(client, "list_tracked_terminals")
        result: Any = await client.call_tool("send_to_terminal", {"terminalId": own, "text": "x"})
    assert (much["exit_code"], much["output_bytes"] > 2_000_000) == (0, True)
    assert much["output"].endswith("\n400000\n")
    assert crashed["exit_code"] is None
    assert (listed["terminals"][0]["running"], listed["terminals"][0]["signal"]) == (False, "SIGSEGV")
    assert result.is_error
    assert re.search(r"has ended \(ended by SIGSEGV\)", json.dumps(result.structured_content))
