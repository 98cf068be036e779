"""The MCP server: tools listed and called, in both generations of the protocol.

Owns the translation between MCP and the gate: caller, patience, heartbeats, results. It does not know which
transport carries the messages (talk.py, streamable.py) or what any tool does.

Who calls: a credential, or a door, as the caller that the gate and the record know.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from handrail import __version__
from handrail.errors import Unwritable
from handrail.gate.call import Call
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.tool import Tool
from handrail.server.access import Client
from handrail.server.mcp.results import output_schema, refused, to_result
from handrail.store.values import Caller

Context = ServerRequestContext[Any, Any]

FIRST_BEAT_SECONDS = 1.0
"""After which a client hears that its call waits for a person: soon, because somebody may be looking on."""
HEARTBEAT_SECONDS = 10.0
"""Between signs of life to a client that asked for them: shorter than every known idle limit."""
PATIENCE_WITH_HEARTBEAT = 10.0
"""More than without: heartbeats help some clients, but others end a call at 60 s all the same."""
INSTRUCTIONS = (
    "Handrail runs commands and edits files on this machine under a person's eyes. A call may wait for the person's "
    "approval, and the person may cancel or complete it. When a result says `running` or `waiting`, the call goes on: "
    "ask wait_for_call with its call_id, and do not start it again. `waiting_for_input` means that the command asks a "
    "question: answer with send_to_terminal, then wait_for_call. A denial comes with the person's reason: follow it."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One client's line to us: who it is, and how to tell its door which call a request became."""

    caller: Callable[[Context], Caller]
    opened: Callable[[Context, Call], None] = lambda _context, _call: None
    gone: Callable[[Context], anyio.Event | None] = lambda _context: None
    """Set when the client closed the stream it waits on, where the SDK does not notice by itself."""


class Mcp:
    """Makes a server for each line; all of them share the gate."""

    def __init__(self, gate: Gate, wait_seconds: float) -> None:
        self._gate = gate
        self._wait_seconds = wait_seconds
        self._listed = types.ListToolsResult(
            tools=[_describe(tool) for tool in gate.toolbox.values() if tool.listed]
        )

    def server(self, line: Line) -> Server[Any]:
        async def list_tools(
            _context: Context, _params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            return self._listed

        async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await self._call(line, context, params)

        server = Server[Any](
            "handrail",
            version=__version__,
            title="Handrail",
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )
        server.middleware.clear()  # it makes spans, which nobody here collects
        return server

    def acts(self, call: Call) -> bool:
        """Whether a call may change anything; one whose tool there is not never begins."""
        tool = self._gate.toolbox.get(call.tool)
        return tool is not None and not tool.reads_only

    async def _call(
        self, line: Line, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        beats = (context.meta or {}).get("progress_token") is not None
        gone = line.gone(context)
        request = Request(
            tool=params.name,
            input=params.arguments or {},
            caller=line.caller(context),
            patience=self._wait_seconds + (PATIENCE_WITH_HEARTBEAT if beats else 0),
        )
        try:
            if not beats and gone is None:
                reply = await self._gate.submit(request, lambda call: line.opened(context, call))
            else:
                reply = await self._accompanied(line, context, request, gone)
        except Unwritable as problem:
            return refused(params.name, str(problem))
        return self._result(reply) if reply else refused(params.name, "The client closed its stream.")

    async def _accompanied(
        self, line: Line, context: Context, request: Request, gone: anyio.Event | None
    ) -> Reply | None:
        """Submit with signs of life to the client, and with an ear for its leaving."""
        async with anyio.create_task_group() as group:

            def opened(call: Call) -> None:
                line.opened(context, call)
                group.start_soon(_beat, context, call)

            if gone is not None:
                group.start_soon(_leave, gone, group.cancel_scope)
            reply = await self._gate.submit(request, opened)
            group.cancel_scope.cancel()
            return reply
        return None

    def _result(self, reply: Reply) -> types.CallToolResult:
        salvage = self._gate.salvage(reply.call) if reply.outcome is None else None
        return to_result(reply, salvage and salvage.result)


async def _leave(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


async def _beat(context: Context, call: Call) -> None:
    first = min(FIRST_BEAT_SECONDS, HEARTBEAT_SECONDS)
    await anyio.sleep(first)
    if call.status != "waiting":
        await anyio.sleep(HEARTBEAT_SECONDS - first)
    while True:
        seconds = call.elapsed_ms / 1000
        doing = "waiting for a person" if call.status == "waiting" else "running"
        await context.session.report_progress(seconds, message=f"{doing} for {seconds:.0f} s")
        await anyio.sleep(HEARTBEAT_SECONDS)


def client_name(context: Context) -> str:
    """What the client calls itself; only ever shown."""
    told = context.session.client_params
    return told.client_info.name[:100] if told is not None else "unnamed client"


def _describe(tool: Tool[Any, Any]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input.model_json_schema(),
        output_schema=output_schema(tool),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.reads_only,
            open_world_hint=not tool.reads_only,
        ),
    )


@dataclass(frozen=True, slots=True)
class Callers:
    """Makes callers of clients."""

    running: Callable[[str], str | None]
    """The operation that runs for a thread now."""

    def holding(self, client: Client, door: Literal["http", "stdio"], told: str) -> Caller:
        """Whoever holds this credential; `told` is what they call themselves.

        An agent that we started for a thread is known by the name we know it under, and calls for the prompt that it
        works on. Everything it does for that thread has one key, whichever way it comes.
        """
        if client.thread is None:
            return Caller(door=door, client=told, key=client.credential, workspace=client.workspace)
        return Caller(
            door=door,
            client=client.name,
            key=client.thread,
            workspace=client.workspace,
            thread=client.thread,
            operation=self.running(client.thread),
        )
