"""The MCP server: tools/list and tools/call, in both generations of the protocol, for every transport.

Translates between MCP and the gate: callers, patience, progress notifications, results and output schemas. A result
has the same shape however the call ended.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, assert_never, cast

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, JsonValue, TypeAdapter, create_model

from handrail import __version__
from handrail.errors import Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.tool import Image, Tool
from handrail.server.client_hooks import Hooks
from handrail.server.mcp._approve import APPROVE, approve
from handrail.server.mcp._client_link import McpClientLink
from handrail.server.mcp._client_timeouts import longest_wait
from handrail.server.mcp._forwarded_calls import ForwardedCalls
from handrail.server.mcp._relayed_features import METHODS, RelayedFeatures
from handrail.server.mcp._tool_listing import ChangingServer, ToolListing
from handrail.store.bell import Bell
from handrail.store.calls import Status
from handrail.store.values import Caller, Json, Receipt, Result
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


class McpServers:
    """Creates one SDK server per connection; all share the gate."""

    def __init__(
        self, gate: Gate, hooks: Hooks, wait_seconds: float, upstream: Servers | None = None
    ) -> None:
        """`upstream` are the other MCP servers, whose tools are offered too."""
        self.gate = gate
        self.forwarded = None if upstream is None else ForwardedCalls(upstream, wait_seconds)
        self._features = None if upstream is None else RelayedFeatures(upstream)
        self._hooks = hooks
        self._wait_seconds = wait_seconds
        described = {name: _describe_tool(tool) for name, tool in gate.toolbox.items() if tool.listed}
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
            if not is_plain_call(ctx):
                return await call_next(ctx)
            params = cast("Json", ctx.params)
            arguments = cast("Json", params.get("arguments") or {})
            return to_wire(await self._call(line, ctx, str(params["name"]), arguments))

        server = ChangingServer(
            "handrail",
            version=__version__,
            title="Handrail",
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )
        server.more = self._features and self._features.relayed_capabilities
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
            return forwarded.call(self._link(forwarded, line, context), context, submit, self._result)
        if context.method in METHODS and self._features is not None:
            link = self._link(forwarded, line, context)
            return self._features.handle(link, context, partial(self._submit_read, line, context))
        return None

    async def _list_with_forwarded(
        self, forwarded: ForwardedCalls, line: ConnectionHooks, context: Context, call_next: CallNext
    ) -> HandlerResult:
        own = await call_next(context)
        if not isinstance(own, dict):
            return own
        return await forwarded.list(self._link(forwarded, line, context), cast("Json", own))

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

    async def announce_tools(self, changed: Bell) -> None:
        """Notify clients after each ring of which other tools are there now; until cancelled."""
        await self._tools.announce(changed)

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
            return _failed_result(tool, error)
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
        request = Request(
            tool=tool,
            input=arguments,
            caller=line.caller(context),
            patience=self._wait_seconds + (PATIENCE_WITH_HEARTBEAT if has_progress else 0),
            patience_max=longest,
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
            result = await approve(self._hooks, line.caller(context), arguments)
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


def _describe_tool(tool: Tool[Any, Any]) -> types.Tool:
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


_RECEIPT = TypeAdapter(Receipt)
EXPIRED = "expired"
"""The `reason` of a call whose approval expired, to tell it from a denial."""

WireStatus = Literal[
    "done",
    "failed",
    "denied",
    "cancelled",
    "force-completed",
    "interrupted",
    "running",
    "waiting",
    "waiting_for_input",
]


class SignalFact(BaseModel):
    signal: str
    after_ms: int


class ProcessFact(BaseModel):
    pid: int
    name: str


class ReceiptFacts(BaseModel):
    """What ending the call really did."""

    ended_by: str
    stopped: bool
    signals: list[SignalFact]
    processes_stopped: list[ProcessFact]
    processes_left: list[ProcessFact]
    bytes_kept: int
    files_changed: list[str]


class EditedFacts(BaseModel):
    """A person changed the input before they allowed it."""

    input: dict[str, JsonValue] = Field(description="What was run.")
    asked: dict[str, JsonValue] = Field(description="What you had asked for.")


class CommonOutput(BaseModel):
    """What every result holds, whatever the tool; a door that lost its daemon knows only some of it."""

    status: WireStatus
    call_id: str | None = Field(None, description="Give this to get_call or wait_for_call.")
    tool: str | None = None
    message: str | None = None
    reason: str | None = None
    elapsed_ms: int | None = None
    edited: EditedFacts | None = None
    person_says: str | None = Field(None, description="What the person who allowed it tells you.")
    difference: str | None = Field(None, description="How a file changed while a person was asked.")
    receipt: ReceiptFacts | None = None


def output_schema(tool: Tool[Any, Any]) -> dict[str, Any]:
    """The output schema of a tool. Valid for every way a call can end."""
    model = create_model(f"{tool.name}_output", __base__=(tool.output, CommonOutput))
    return compact_schema(model.model_json_schema(mode="serialization"))


def to_result(reply: Reply, so_far: Result | None = None) -> types.CallToolResult:
    """Convert a reply to a tool result. `so_far` is the partial result of a call that is still open."""
    call, outcome = reply.call, reply.outcome
    if outcome is None:
        return _handed_back(reply, so_far or Result(text="", data={}))
    data = {
        **(outcome.result.data if outcome.result else {}),
        **_common_data(call, wire_status(outcome.ending)),
    }
    if outcome.message:
        data["message"] = outcome.message
    if outcome.ending in ("denied", "failed"):
        data["reason"] = EXPIRED if _has_expired(call) else outcome.message
    data["receipt"] = _receipt_data(call)
    is_error = outcome.ending in ("failed", "denied", "cancelled", "interrupted")
    image = call.image if outcome.ending == "done" else None
    return _result(_text(call, outcome), data, is_error=is_error, image=image)


def refused_result(tool: str, sentence: str) -> types.CallToolResult:
    """The result of a call that could not be recorded. Nothing was run."""
    data: Json = {"status": "failed", "call_id": "", "tool": tool, "message": sentence, "reason": sentence}
    return _result(sentence, data, is_error=True)


def _failed_result(tool: str, error: Exception) -> types.CallToolResult:
    """The result of a call that raised: the one place that turns exceptions into MCP results."""
    if isinstance(error, Unwritable):
        return refused_result(tool, str(error))
    log.error("a call of %s failed", tool, exc_info=error)
    return refused_result(
        tool, f"{type(error).__name__}: this is a fault in Handrail; its log has the details."
    )


def wire_status(status: Status) -> WireStatus:
    return "force-completed" if status == "completed" else status


def _has_expired(call: Call) -> bool:
    return call.approval is not None and call.approval.expired_ms is not None


def _handed_back(reply: Reply, so_far: Result) -> types.CallToolResult:
    call = reply.call
    again = "This very call is open already and was not started again. " if reply.repeated else ""
    status, state = _state(call, so_far.data.get("waiting_for_input"))
    message = f"{again}{state}{_capped(reply)}"
    data = {**so_far.data, **_common_data(call, status), "message": message}
    text = f"{message}\n\nSo far:\n{so_far.text}" if so_far.text else message
    return _result(text, data, is_error=False)


def _state(call: Call, asks: JsonValue) -> tuple[WireStatus, str]:
    """The status of an open call, and advice for the model."""
    then = f'Call wait_for_call with call_id "{call.id}" for its outcome.'
    if call.status == "waiting":
        return "waiting", f"It waits for a person to approve it; nothing has been run. {then}"
    if isinstance(asks, dict):
        return "waiting_for_input", str(asks["advice"])
    return wire_status(call.status), f"It is still running after {call.elapsed_ms / 1000:.0f} s. {then}"


def _capped(reply: Reply) -> str:
    """Why the call was handed back before the time that its input named; empty if it was not."""
    if reply.asked_wait is None:
        return ""
    limit = f"after {reply.call.patience:g} s, not {reply.asked_wait:g} s"
    return (
        f" It was handed back {limit}, because your client ends a call that takes longer; the call goes on."
    )


def _common_data(call: Call, status: WireStatus) -> Json:
    data: Json = {"status": status, "call_id": call.id, "tool": call.tool, "elapsed_ms": call.elapsed_ms}
    if call.terminal is not None:
        data["terminal_id"] = call.terminal
    return data


def _receipt_data(call: Call) -> Json:
    return _RECEIPT.dump_python(call.receipt, mode="json")


def _text(call: Call, outcome: Outcome) -> str:
    body = outcome.result.text if outcome.result else ""
    match outcome.ending:
        case "done":
            return body
        case "denied":
            reason = f" Reason: {outcome.message}" if outcome.message else " No reason was given."
            return f"Denied by {outcome.by}.{reason} Nothing was run."
        case "failed":
            return f"{outcome.message}\n\n{body}" if body else outcome.message
        case "cancelled" | "completed" | "interrupted":
            left = f" Call {call.id}; get_call has its final receipt."
            return f"{outcome.message}{left}\n\n{body}" if body else f"{outcome.message}{left}"
        case _:
            assert_never(outcome.ending)


def _result(text: str, data: Json, *, is_error: bool, image: Image | None = None) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    if image is not None:
        encoded = base64.b64encode(image.content).decode()
        content.append(types.ImageContent(type="image", data=encoded, mime_type=image.mime))
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)


_VALUE_KEYWORDS = {"enum", "const"}
"""Keywords that list the valid values. With these, a type union with null would not admit null."""


def compact_schema(schema: Json) -> Json:
    """Shorten a schema: no titles and defaults, references inlined (none may be recursive), "or null" as a type."""
    definitions = cast("Json", schema.get("$defs", {}))
    return cast(
        "Json", _compact({name: value for name, value in schema.items() if name != "$defs"}, definitions)
    )


def _compact(schema: JsonValue, definitions: Json) -> JsonValue:
    if isinstance(schema, list):
        return [_compact(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        return _compact(definitions[reference.removeprefix("#/$defs/")], definitions)
    kept = {name: value for name, value in schema.items() if not _is_noise(name, value)}
    return _or_null({name: _compact(value, definitions) for name, value in kept.items()})


def _is_noise(name: str, value: JsonValue) -> bool:
    """Whether a keyword can be dropped. A property named `title` or `default` holds a schema and stays."""
    return (name == "title" and isinstance(value, str)) or (name == "default" and not isinstance(value, dict))


def _or_null(schema: Json) -> Json:
    match schema:
        case {"anyOf": [{"type": str(kind), **rest}, {"type": "null"}], **others} if (
            not _VALUE_KEYWORDS & rest.keys()
        ):
            return {**rest, **others, "type": [kind, "null"]}
        case _:
            return schema
