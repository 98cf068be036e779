"""MCP and the gate, with the SDK's own client in the same process: who calls, how long, and signs of life."""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from pydantic import BaseModel
from tests.support.hook_world import build_hooks

from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import CallReport, Plan, Tool
from handrail.server.mcp import _client_timeouts as client_timeouts
from handrail.server.mcp import mcp_server
from handrail.server.mcp._client_timeouts import longest_wait
from handrail.server.mcp.mcp_server import ConnectionHooks, Context, McpServers, client_name
from handrail.store.actor import PERSON
from handrail.store.bell import Bell
from handrail.store.journal import open_journal
from handrail.store.values import Caller, Claim, Result

BOUND = 20.0


class Nothing(BaseModel):
    """A tool that is asked nothing, and says nothing of its own."""

    wait_seconds: float | None = None


class Slow(Tool[Nothing, Plan]):
    """Runs until its call is ended."""

    name, title, description = "slow", "Slow", "Takes its time."
    input, output = Nothing, Nothing
    reads_only = True

    def display(self, input: Nothing) -> str:
        return "Slow"

    def patience(self, input: Nothing) -> float | None:
        return input.wait_seconds

    async def plan(self, input: Nothing, caller: Caller) -> Plan:
        return Plan(claims=(Claim(action="recall", resource="time", inside=True),), bound={})

    async def run(self, plan: Plan, call: CallReport) -> Result:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")


def caller(context: Context) -> Caller:
    return Caller(door="stdio", client=client_name(context), key="test", workspace=None)


@asynccontextmanager
async def connected(home: Path, patience: float = BOUND) -> AsyncGenerator[tuple[Gate, Client]]:
    info = types.Implementation(name="Zed" + "x" * 200, version="1")
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        anyio.create_task_group() as group,
    ):
        gate = Gate(journal, Rules.with_default(journal), {"slow": Slow()}, group)
        server = McpServers(gate, build_hooks(gate), patience).server(ConnectionHooks(caller=caller))
        with anyio.fail_after(BOUND):
            async with Client(server, mode="legacy", client_info=info) as client:
                yield gate, client
        group.cancel_scope.cancel()


async def test_heartbeats_rise_for_a_client_that_asks_for_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "HEARTBEAT_SECONDS", 0.02)
    beats: list[float] = []
    enough = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        beats.append(progress)
        if len(beats) == 5:
            enough.set()

    async with connected(home) as (gate, client), anyio.create_task_group() as group:
        group.start_soon(lambda: client.call_tool("slow", {}, progress_callback=note))
        await enough.wait()
        (call,) = gate.open.values()
        person_actions.cancel(gate, call, PERSON)

    assert beats[:5] == sorted(set(beats[:5]))


async def test_a_call_is_handed_back_after_the_servers_patience(home: Path) -> None:
    async with connected(home, patience=0.05) as (gate, client):
        result = await client.call_tool("slow", {})
        (call,) = gate.open.values()
        person_actions.cancel(gate, call, PERSON)

    assert isinstance(result, types.CallToolResult)
    assert result.structured_content is not None
    assert (result.structured_content["status"], result.structured_content["call_id"]) == ("running", call.id)
    assert not result.is_error


async def test_a_client_without_progress_gets_its_call_back_before_it_gives_up_and_is_told_why(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_timeouts, "WITHOUT_PROGRESS_SECONDS", 0.05)
    async with connected(home, patience=0.01) as (gate, client):
        result = await client.call_tool("slow", {"wait_seconds": 100})
        (call,) = gate.open.values()
        person_actions.cancel(gate, call, PERSON)

    assert isinstance(result, types.CallToolResult)
    assert result.structured_content is not None
    assert result.structured_content["status"] == "running"
    assert "after 0.05 s, not 100 s" in result.structured_content["message"]


@pytest.mark.parametrize(
    ("client", "has_progress", "configured", "longest"),
    [
        ("claude-code", True, 45, math.inf),
        ("mcp", False, 45, 45),
        ("mcp", False, 10, 45),
        ("mcp", False, 300, 300),
        ("Cline", True, 45, 45),
        ("kimi-code", False, 300, 45),
    ],
)
def test_a_client_waits_as_long_as_is_known_of_it(
    client: str, has_progress: bool, configured: float, longest: float
) -> None:
    assert longest_wait(client, has_progress=has_progress, configured=configured) == longest


async def test_what_a_client_calls_itself_is_kept_short(home: Path) -> None:
    async with connected(home, patience=0.05) as (gate, client):
        await client.call_tool("slow", {})
        (call,) = gate.open.values()
        person_actions.cancel(gate, call, PERSON)

    assert call.caller.client == "Zed" + "x" * 97


async def test_a_client_that_gives_up_cancels_its_call(home: Path) -> None:
    calls: list[Call] = []
    async with connected(home) as (gate, client):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("slow", {}))
            await anyio.wait_all_tasks_blocked()
            calls.extend(gate.open.values())
            group.cancel_scope.cancel()
        await calls[0].settled()

    outcome = calls[0].outcome
    assert outcome is not None
    assert (outcome.ending, str(outcome.by)) == ("cancelled", "client")


class Sometimes(Slow):
    """Listed only while it is there."""

    name = "sometimes"
    there = False

    def is_listed(self, caller: Caller) -> bool:
        return self.there


async def test_a_client_is_told_when_other_tools_are_listed_than_it_knows(home: Path) -> None:
    told, tool, changes = anyio.Event(), Sometimes(), Bell()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        anyio.create_task_group() as group,
    ):
        gate = Gate(journal, Rules.with_default(journal), {"sometimes": tool}, group)
        servers = McpServers(gate, build_hooks(gate), BOUND)
        group.start_soon(servers.announce_tools, changes)
        server = servers.server(ConnectionHooks(caller=caller))
        with anyio.fail_after(BOUND):
            async with Client(server, mode="legacy", message_handler=hear, cache=None) as client:
                assert client.server_capabilities is not None
                assert client.server_capabilities.tools == types.ToolsCapability(list_changed=True)
                assert "sometimes" not in {one.name for one in (await client.list_tools()).tools}
                tool.there = True
                changes.ring()
                await told.wait()
                assert "sometimes" in {one.name for one in (await client.list_tools()).tools}
        group.cancel_scope.cancel()
