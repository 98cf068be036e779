"""A host of our agent: the official SDK's client around the real program, and all that this client hears.

Owns the program's process and its environment. Nothing here knows how the agent works.
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

PATIENCE = 60.0
"""Seconds for anything that is waited for; only a fault reaches this."""
Json = dict[str, Any]


class Client:
    """What an editor would be."""

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
        """All words of a sort so far."""
        return "".join(each["content"].get("text", "") for each in self.of(kind))

    def of(self, kind: str) -> list[Json]:
        return [each for each in self.updates if each["sessionUpdate"] == kind]

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something is so, looking whenever anything was heard."""
        with anyio.fail_after(PATIENCE):
            while not holds():
                bell = self._bell
                await bell.wait()

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()


@dataclass
class Host:
    """A running program, and the client at its other end."""

    agent: Any
    client: Client
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
        """A request that the SDK has no word for."""
        with anyio.fail_after(PATIENCE):
            return await self.agent._conn.send_request(method, params)

    async def send(self, method: str, params: Json) -> anyio.TaskHandle[Any, Any]:
        """The same, to be awaited later; it is on its way before anything that is sent later."""
        asked = self.group.start_soon(self.agent._conn.send_request, method, params)
        await anyio.lowlevel.checkpoint()
        return asked


@asynccontextmanager
async def hosted(
    home: Path, cwd: Path, env: dict[str, str] | None = None, *, activities: bool = True
) -> AsyncGenerator[Host]:
    """The program, started as an editor starts it, with an environment of its own; greeted, and ended with its input."""
    client, heard = Client(), list[Json]()
    around = {"HANDRAIL_HOME": str(home), "HOME": str(home), **_found("PATH", "PYTHONPATH"), **(env or {})}
    command = [sys.executable, "-P", "-m", "handrail.own_agent"]
    kwargs: Json = {"stderr": None, "limit": 64 << 20}
    async with acp.spawn_agent_process(
        cast("acp.Client", client),
        *command,
        env=around,
        cwd=str(cwd),
        transport_kwargs=kwargs,
        use_unstable_protocol=True,
        observers=[_into(heard)],
    ) as (agent, process):
        meta: Json = {"handrail": {"activities": activities}}
        with anyio.fail_after(PATIENCE):
            about = await agent.initialize(
                protocol_version=1,
                client_capabilities=ClientCapabilities(field_meta=meta),
                client_info=Implementation(name="tests", version="1"),
            )
        async with anyio.create_task_group() as group:
            yield Host(agent, client, process, cwd, about, group, heard=heard)
            group.cancel_scope.cancel()


def somebody(log: Path, name: str = "somebody") -> McpServerStdio:
    """An MCP server of the tests (tools/somebody.py), as a host names it. Under the name `handrail` it passes for ours, and
    no door of ours is opened beside it."""
    server = Path(__file__).with_name("tools") / "somebody.py"
    return McpServerStdio(name=name, command=sys.executable, args=["-P", str(server), str(log)], env=[])


def _into(heard: list[Json]) -> Callable[[StreamEvent], None]:
    def note(event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING:
            heard.append(event.message)

    return note


def _found(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}
