"""The MCP server: tools/list and tools/call, in both generations of the protocol, for every transport.

Translates between MCP and the gate: callers, patience, progress notifications, results and output schemas. A result
has the same shape however the call ended.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from handrail import __version__
from handrail.clients.open_work import ClientProcess
from handrail.gate.call import Call
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.tool import Tool
from handrail.lazy_dataclass import dataclass
from handrail.server.client_hooks import Hooks
from handrail.server.mcp._approve import APPROVE, approve
from handrail.server.mcp._client_link import McpClientLink
from handrail.server.mcp._client_timeouts import longest_wait
from handrail.server.mcp._forwarded_calls import ForwardedCalls, relayed_answer
from handrail.server.mcp._relayed_features import RelayedFeatures
from handrail.server.mcp._subscriptions import Subscriptions
from handrail.server.mcp._tool_listing import ChangingServer, ToolListing
from handrail.server.mcp.tasks import Tasks, asks_for_task, declares_tasks
from handrail.server.mcp.tool_results import failed_result, output_schema, refused_result, to_result
from handrail.store.bell import Bell
from handrail.store.records import Records
from handrail.store.values import Caller, Json
from handrail.upstream.servers import Servers

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

FIRST_BEAT_SECONDS = 1.0
"""Delay of the first progress notification for a call that waits for approval: short, as a person may be watching."""
HEARTBEAT_SECONDS = 10.0
"""Interval of progress notifications. Shorter than every known idle timeout of a client."""
PATIENCE_WITH_HEARTBEAT = 10.0
"""Seconds added to the patience of a call with progress. Not more: some clients end a call at 60 s regardless."""
INSTRUCTIONS = (
    "Handrail runs commands and edits files on this machine under a person's eyes. A call may wait for the person's "
    "approval, and the person may cancel or complete it. When a result says `running` or `waiting`, the call goes on: "
    "ask wait_for_call with its call_id, and do not start it again. `waiting_for_input` means that the command asks a "
    "question: answer with send_to_terminal, then wait_for_call. A denial comes with the person's reason: follow it."
)


@dataclass(frozen=True, slots=True)
class ConnectionHooks:
    """The hooks of one connection: who calls, which call a request opened, and whether the client left."""

    caller: Callable[[Context], Caller]
    opened: Callable[[Context, Call], None] = lambda _context, _call: None
    gone: Callable[[Context], anyio.Event | None] = lambda _context: None
    """Event set when the client closes its response stream, for transports where the SDK does not detect that."""
    key: Callable[[Context], str] | None = None
    """Names the connection: each has its own process of each MCP server behind Handrail. Default: the caller's key."""
    process: ClientProcess | None = None
    """The client, for transports where that is known."""


class McpServers:
    """Creates one SDK server per connection; all share the gate."""

    def __init__(
        self,
        gate: Gate,
        hooks: Hooks,
        wait_seconds: float,
        upstream: Servers | None = None,
        records: Records | None = None,
    ) -> None:
        """`upstream` are the other MCP servers, whose tools are offered too. Without `records` there are no tasks."""
        self.gate = gate
        self.tasks = None if records is None else Tasks(gate, records, self._answer)
        self.forwarded = None if upstream is None else ForwardedCalls(upstream, wait_seconds, self.tasks)
        self._features = (
            None if upstream is None or self.forwarded is None else RelayedFeatures(upstream, self.forwarded)
        )
        self._subscriptions = Subscriptions(upstream, self._features and self._features.features, self.tasks)
        if self.forwarded is not None:
            self.forwarded.on_resource_change = self._subscriptions.note_resource
        self._hooks = hooks
        self._wait_seconds = wait_seconds
        execution = None if records is None else types.ToolExecution(task_support="optional")
        described = {
            name: _describe_tool(tool, execution) for name, tool in gate.toolbox.items() if tool.listed
        }
        self._tools = ToolListing(
            gate.toolbox, described, APPROVE, lambda: 0 if upstream is None else upstream.version
        )

    def server(self, line: ConnectionHooks) -> Server[Any]:
        async def list_tools(
            context: Context, _params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            return self._tools.list(context, line.caller(context))

        async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await self._call(line, context, params.name, params.arguments or {})

        async def call_tool_directly(ctx: Context, call_next: CallNext) -> HandlerResult:
            """Middleware for most calls. The SDK would validate their parameters twice, and dump the result twice."""
            if (relayed := self._relay(line, ctx, call_next)) is not None:
                return await relayed
            if (task := self._call_for_task(line, ctx)) is not None:
                return await task
            if not is_plain_call(ctx):
                return await call_next(ctx)
            params = cast("Json", ctx.params)
            arguments = cast("Json", params.get("arguments") or {})
            return to_wire(await self._call(line, ctx, str(params["name"]), arguments))

        async def listen(
            context: Context, params: types.SubscriptionsListenRequestParams
        ) -> types.SubscriptionsListenResult:
            return await self._listen(line, context, params)

        server = ChangingServer(
            "handrail",
            version=__version__,
            title="Handrail",
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_subscriptions_listen=listen,
        )
        server.more = self._features and self._features.relayed_capabilities
        server.has_tasks = self.tasks is not None
        if self.tasks is not None:
            self.tasks.register(server, line.caller, line.gone)
        # In the place of the SDK's own, which creates tracing spans that are not collected.
        server.middleware[:] = [call_tool_directly]
        return server

    def _relay(
        self, line: ConnectionHooks, context: Context, call_next: CallNext
    ) -> Awaitable[HandlerResult] | None:
        """The handling of a request that other MCP servers take part in; None for all others."""
        forwarded = self.forwarded
        if forwarded is None or not forwarded.servers.names:
            return None
        if context.method == "tools/list":
            return self._list_with_forwarded(forwarded, line, context, call_next)
        if forwarded.is_forwarded(context):
            submit = partial(self._submit_forwarded, line)
            is_denied = partial(self._is_denied, line)
            link = self._link(forwarded, line, context)
            return forwarded.call(link, context, submit, is_denied, self._result)
        if self._features is not None and self._features.has_method(context):
            link = self._link(forwarded, line, context)
            return self._features.handle(link, context, partial(self._submit_read, line, context))
        return None

    def _call_for_task(self, line: ConnectionHooks, context: Context) -> Awaitable[HandlerResult] | None:
        """The handling of a call of our tools whose client takes a task; None for all others."""
        is_asked = asks_for_task(context)
        if context.method != "tools/call" or not (is_asked or declares_tasks(context)):
            return None
        params = cast("Json", context.params)
        name, arguments = params.get("name"), params.get("arguments") or {}
        is_open = not is_asked or context.session.client_params is not None
        if self.tasks is None or not is_open or not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        if name != APPROVE.name:
            return self._start_task(self.tasks, line, context, name, arguments)
        if is_asked:
            raise MCPError(types.METHOD_NOT_FOUND, f"{name} cannot be called as a task.")
        return None

    async def _start_task(
        self, tasks: Tasks, line: ConnectionHooks, context: Context, tool: str, arguments: Json
    ) -> HandlerResult:
        try:
            reply = await self._submit(line, context, tool, arguments, partial(_report_progress, context))
        except MCPError:
            raise
        except Exception as error:
            result = to_wire(failed_result(tool, error))
            if asks_for_task(context):
                raise MCPError(types.INTERNAL_ERROR, result["structuredContent"]["message"]) from None
            return {"resultType": "complete", **result}
        if reply is None:
            raise MCPError(types.INTERNAL_ERROR, "The client closed its stream.")
        task = tasks.hand_over(context, reply)
        return task or {"resultType": "complete", **self._answer(reply)}

    async def _is_denied(self, line: ConnectionHooks, context: Context, tool: str, arguments: Json) -> bool:
        return await self.gate.drafts.is_denied(tool, arguments, line.caller(context))

    async def _list_with_forwarded(
        self, forwarded: ForwardedCalls, line: ConnectionHooks, context: Context, call_next: CallNext
    ) -> HandlerResult:
        own = await call_next(context)
        if not isinstance(own, dict):
            return own
        link = self._link(forwarded, line, context)
        return await forwarded.list(link, context.protocol_version, cast("Json", own))

    def _link(self, forwarded: ForwardedCalls, line: ConnectionHooks, context: Context) -> McpClientLink:
        caller = line.caller(context)
        key = caller.key if line.key is None else line.key(context)
        return forwarded.link(key, context, caller.workspace)

    async def _submit_read(
        self,
        line: ConnectionHooks,
        context: Context,
        tool: str,
        input: Json,
        opened: Callable[[Call], None],
    ) -> Reply | None:
        return await self._submit_forwarded(
            line, context, tool, input, opened, partial(_report_progress, context)
        )

    async def _submit_forwarded(
        self,
        line: ConnectionHooks,
        context: Context,
        tool: str,
        arguments: Json,
        opened: Callable[[Call], None],
        report: Callable[[Call], Coroutine[Any, Any, None]],
    ) -> Reply | None:
        def opened_both(context: Context, call: Call) -> None:
            line.opened(context, call)
            opened(call)

        hooks = replace(line, opened=opened_both)
        return await self._submit(hooks, context, tool, arguments, report)

    async def _listen(
        self, line: ConnectionHooks, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        key = line.caller(context).key if line.key is None else line.key(context)
        has_servers = self.forwarded is not None and self.forwarded.servers.names
        link = self._link(self.forwarded, line, context) if self.forwarded and has_servers else None
        return await self._subscriptions.serve(
            key, link, context, line.caller(context), params, line.gone(context)
        )

    async def announce_tools(self, changed: Bell) -> None:
        """Notify clients after each ring of which other tools are there now; until cancelled."""
        await self._tools.announce(changed, self._subscriptions.note_tools)

    def client_left(self, key: str) -> None:
        """End the MCP servers that ran for a connection."""
        if self.forwarded is not None:
            self.forwarded.close(key)

    def acts(self, call: Call) -> bool:
        """Whether a call may change anything. A call of an unknown tool may not: it never runs."""
        tool = self.gate.toolbox.get(call.tool)
        return tool is not None and not tool.reads_only

    async def _call(
        self, line: ConnectionHooks, context: Context, tool: str, arguments: Json
    ) -> types.CallToolResult:
        if tool == APPROVE.name:
            return await self._approve(line, context, arguments)
        try:
            reply = await self._submit(line, context, tool, arguments, partial(_report_progress, context))
        except MCPError:
            raise
        except Exception as error:
            return failed_result(tool, error)
        return self._result(reply) if reply else refused_result(tool, "The client closed its stream.")

    async def _submit(
        self,
        line: ConnectionHooks,
        context: Context,
        tool: str,
        arguments: Json,
        report: Callable[[Call], Coroutine[Any, Any, None]],
    ) -> Reply | None:
        """Submit a call as its client can wait for it; None if the client leaves first."""
        has_progress = (context.meta or {}).get("progress_token") is not None
        gone = line.gone(context)
        longest = longest_wait(client_name(context), has_progress=has_progress, configured=self._wait_seconds)
        is_task = self.tasks is not None and asks_for_task(context)
        request = Request(
            tool=tool,
            input=arguments,
            caller=line.caller(context),
            patience=self._wait_seconds + (PATIENCE_WITH_HEARTBEAT if has_progress else 0),
            patience_max=0 if is_task else longest,
            anew=is_task,
        )
        if not has_progress and gone is None:
            return await self.gate.submit(request, lambda call: line.opened(context, call))
        return await self._submit_with_progress(
            line, context, request, gone, report if has_progress else None
        )

    async def _approve(
        self, line: ConnectionHooks, context: Context, arguments: Json
    ) -> types.CallToolResult:
        """Judge work that the client does itself. Waits without a limit: the client does too."""
        gone = line.gone(context)
        async with anyio.create_task_group() as group:
            if (context.meta or {}).get("progress_token") is not None:
                group.start_soon(_report_waiting, context)
            if gone is not None:
                group.start_soon(_cancel_when_gone, gone, group.cancel_scope)
            result = await approve(self._hooks, line.caller(context), arguments, line.process)
            group.cancel_scope.cancel()
            return result
        return refused_result(APPROVE.name, "The client closed its stream.")

    async def _submit_with_progress(
        self,
        line: ConnectionHooks,
        context: Context,
        request: Request,
        gone: anyio.Event | None,
        report: Callable[[Call], Coroutine[Any, Any, None]] | None,
    ) -> Reply | None:
        """Submit, with progress notifications to the client; None if the client leaves first."""
        problem: Exception | None = None
        async with anyio.create_task_group() as group:

            def opened(call: Call) -> None:
                line.opened(context, call)
                if report is not None:
                    group.start_soon(report, call)

            if gone is not None:
                group.start_soon(_cancel_when_gone, gone, group.cancel_scope)
            try:
                return await self.gate.submit(request, opened)
            except Exception as error:  # raised again below, outside the ExceptionGroup
                problem = error
            finally:
                group.cancel_scope.cancel()
        if problem is not None:
            raise problem
        return None

    def _answer(self, reply: Reply) -> Json:
        """The result of a call on the wire. Raises MCPError if its server answered with an error."""
        if reply.call.assurance == "forwarded":
            return relayed_answer(reply, self._result)
        return to_wire(self._result(reply))

    def _result(self, reply: Reply) -> types.CallToolResult:
        salvage = self.gate.salvage(reply.call) if reply.outcome is None else None
        return to_result(reply, salvage and salvage.result)


_PLAIN_PARAMS = frozenset({"name", "arguments", "_meta"})


def is_plain_call(context: Context) -> bool:
    """Whether a request is a valid tools/call of an initialized client that uses nothing but the basic parameters.

    The SDK handles all others, and answers those that are invalid.
    """
    params = context.params
    return (
        context.method == "tools/call"
        and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        and context.session.client_params is not None
        and params is not None
        and params.keys() <= _PLAIN_PARAMS
        and isinstance(params.get("name"), str)
        and isinstance(params.get("arguments", {}), dict)
        and ("_meta" in params) == (context.meta is not None)
    )


def to_wire(result: types.CallToolResult) -> dict[str, Any]:
    """A tool result as the SDK would dump it for a client of the handshake protocols."""
    content = [_block_to_wire(block) for block in result.content]
    wire: dict[str, Any] = {"content": content, "isError": result.is_error}
    if result.structured_content is None:
        return wire
    return {**wire, "structuredContent": result.structured_content}


def _block_to_wire(block: types.ContentBlock) -> dict[str, Any]:
    if block.type == "text":
        return {"text": block.text, "type": "text"}
    return block.model_dump(by_alias=True, mode="json", exclude_none=True)


async def _cancel_when_gone(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


async def _report_progress(context: Context, call: Call) -> None:
    first = min(FIRST_BEAT_SECONDS, HEARTBEAT_SECONDS)
    await anyio.sleep(first)
    if call.status != "waiting":
        await anyio.sleep(HEARTBEAT_SECONDS - first)
    while True:
        seconds = call.elapsed_ms / 1000
        doing = "waiting for a person" if call.status == "waiting" else "running"
        await context.session.report_progress(seconds, message=f"{doing} for {seconds:.0f} s")
        await anyio.sleep(HEARTBEAT_SECONDS)


async def _report_waiting(context: Context) -> None:
    began = anyio.current_time()
    while True:
        await anyio.sleep(min(FIRST_BEAT_SECONDS, HEARTBEAT_SECONDS))
        seconds = anyio.current_time() - began
        await context.session.report_progress(seconds, message=f"waiting for a person for {seconds:.0f} s")
        await anyio.sleep(HEARTBEAT_SECONDS)


def client_name(context: Context) -> str:
    """The name that the client reports. For display only."""
    params = context.session.client_params
    return params.client_info.name[:100] if params is not None else "unnamed client"


def _describe_tool(tool: Tool[Any, Any], execution: types.ToolExecution | None) -> types.Tool:
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
        execution=execution,
    )
