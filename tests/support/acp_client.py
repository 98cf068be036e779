"""An ACP client for our own agent: the official SDK's client and the real program, with all messages recorded.

It owns the program's process and environment. A test waits with `RecordingClient.until`.
"""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
import anyio
import anyio.lowlevel
from acp.connection import StreamDirection, StreamEvent
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    RequestPermissionResponse,
)
from anyio.abc import TaskGroup
from tests.support.agent_fork_server import LIMIT, forked_agent

PLAIN_SERVER = Path(__file__).parent / "mcp_servers" / "plain.py"
PATIENCE = 60.0
"""Seconds for anything that is waited for; only a fault reaches this."""
Json = dict[str, Any]


class RecordingClient:
    """The client's side of the protocol, as an editor has it."""

    def __init__(self) -> None:
        self.updates: list[Json] = []
        self.activities: list[Json] = []
        self.asked: list[Json] = []
        self.answer: str | None = "allowed"
        """The option that is chosen; None for a question that is left open."""
        self._bell = anyio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(
            {"session": session_id, **update.model_dump(mode="json", by_alias=True, exclude_none=True)}
        )
        self._ring()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call.model_dump(mode="json", by_alias=True, exclude_none=True))
        self._ring()
        if self.answer is None:
            await anyio.sleep_forever()
        if self.answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=cast("str", self.answer))
        )

    async def ext_notification(self, method: str, params: Json) -> None:
        assert method == "handrail/activity", method
        self.activities.append(params["activity"])
        self._ring()

    def said(self, kind: str = "agent_message_chunk") -> str:
        """The text of all updates of a kind."""
        return "".join(each["content"].get("text", "") for each in self.of(kind))

    def of(self, kind: str) -> list[Json]:
        return [each for each in self.updates if each["sessionUpdate"] == kind]

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for a condition; check it after each message."""
        with anyio.fail_after(PATIENCE):
            while not holds():
                bell = self._bell
                await bell.wait()

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()


@dataclass
class HostedAgent:
    """A running program, and the client at its other end."""

    agent: Any
    client: RecordingClient
    process: Any
    cwd: Path
    about: InitializeResponse
    group: TaskGroup
    servers: list[Any] = field(default_factory=list[Any])
    heard: list[Json] = field(default_factory=list[Json])
    """Every message of the program's, as it came."""

    async def new(self) -> str:
        return (await self.opened()).session_id

    async def opened(self) -> Any:
        with anyio.fail_after(PATIENCE):
            return await self.agent.new_session(cwd=str(self.cwd), mcp_servers=self.servers)

    async def prompt(self, session: str, text: str) -> str:
        """Its stop reason."""
        with anyio.fail_after(PATIENCE):
            answer = await self.agent.prompt(session_id=session, prompt=[acp.text_block(text)])
        return answer.stop_reason

    async def ask(self, method: str, params: Json) -> Any:
        """Send a request that the SDK has no method for."""
        with anyio.fail_after(PATIENCE):
            return await self.agent._conn.send_request(method, params)

    async def send(self, method: str, params: Json) -> anyio.TaskHandle[Any, Any]:
        """The same, to be awaited later. It is sent before any later request."""
        asked = self.group.start_soon(self.agent._conn.send_request, method, params)
        await anyio.lowlevel.checkpoint()
        return asked


@asynccontextmanager
async def hosted_agent(
    home: Path, cwd: Path, env: dict[str, str] | None = None, *, activities: bool = True, forked: bool = True
) -> AsyncGenerator[HostedAgent]:
    """Start the program with a separate environment and initialize it. It ends with its input.

    It is a fork of a process with all its modules, or, with `forked=False`, a new interpreter.
    """
    client, heard = RecordingClient(), list[Json]()
    around = {"HANDRAIL_HOME": str(home), "HOME": str(home), **_found("PATH", "PYTHONPATH"), **(env or {})}
    start = _fork if forked else _spawn
    async with start(client, around, cwd, observers=[_into(heard)]) as (agent, process):
        meta: Json = {"handrail": {"activities": activities}}
        with anyio.fail_after(PATIENCE):
            about = await agent.initialize(
                protocol_version=1,
                client_capabilities=ClientCapabilities(field_meta=meta),
                client_info=Implementation(name="tests", version="1"),
            )
        async with anyio.create_task_group() as group:
            yield HostedAgent(agent, client, process, cwd, about, group, heard=heard)
            group.cancel_scope.cancel()


@asynccontextmanager
async def _fork(
    client: RecordingClient, env: dict[str, str], cwd: Path, **more: Any
) -> AsyncGenerator[tuple[Any, Any]]:
    async with forked_agent(env, cwd) as process:
        to_client = cast("acp.Client", client)
        agent = acp.connect_to_agent(
            to_client, process.writer, process.reader, use_unstable_protocol=True, **more
        )
        try:
            yield agent, process
        finally:
            await agent.close()


@asynccontextmanager
async def _spawn(
    client: RecordingClient, env: dict[str, str], cwd: Path, **more: Any
) -> AsyncGenerator[tuple[Any, Any]]:
    command = [sys.executable, "-P", "-m", "handrail.own_agent"]
    kwargs: Json = {"stderr": None, "limit": LIMIT}
    async with acp.spawn_agent_process(
        cast("acp.Client", client),
        *command,
        env=env,
        cwd=str(cwd),
        transport_kwargs=kwargs,
        use_unstable_protocol=True,
        **more,
    ) as (agent, process):
        yield agent, process


def sample_mcp_server(log: Path, name: str = "somebody") -> McpServerStdio:
    """The server mcp_servers/plain.py, as a host names it. Under the name `handrail` it replaces ours."""
    return McpServerStdio(
        name=name, command=sys.executable, args=["-I", "-S", str(PLAIN_SERVER), str(log)], env=[]
    )


def _into(heard: list[Json]) -> Callable[[StreamEvent], None]:
    def note(event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING:
            heard.append(event.message)

    return note


def _found(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}
