"""Calls of tools of other MCP servers: listed with ours, submitted to the gate, and answered as their server answered.

The answer of a server passes as it is. A call that ended in another way (denied, handed back, cancelled) gets a result of
our own, which is valid for the tool's output schema as it was listed.
"""

import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import JsonValue

from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Reply
from handrail.server.mcp._client_link import (
    Context,
    ForwardedRequest,
    McpClientLink,
    name_server_in_links,
)
from handrail.server.mcp.tasks import Tasks, asks_for_task, set_task_support
from handrail.store.values import Json
from handrail.upstream.servers import Route, Servers
from handrail.upstream.tool_definition import SEPARATOR

LIST_SECONDS = 15.0
"""Time for servers whose tools were never listed to start. Slower ones follow with `list_changed`."""
FAILED_LIST_SECONDS = 1.0
"""The same for those whose last start failed: one that is broken must not delay each client."""
SETTLED_MAX = 32
"""Requests of one client that ended with a question and whose call has ended since. The client may still fetch the outcome;
beyond this, the oldest are forgotten: bounds memory, for a server asks in each call and a client need not come back."""
_OWN_META = "io.modelcontextprotocol/"
_OURS: Json = {
    "type": "object",
    "properties": {
        "handrail": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("status", "call_id", "message")},
        }
    },
    "required": ["handrail"],
}
"""Structured content of a result that is not the server's, because the call is still open or was completed."""

Submit = Callable[
    [Context, str, Json, Callable[[Call], None], Callable[[Call], Coroutine[Any, Any, None]]],
    Awaitable[Reply | None],
]
"""Submit a call: context, tool, input, what to do with the opened call, and how to report that it goes on."""
IsDenied = Callable[[Context, str, Json], Awaitable[bool]]
"""Whether the rules deny a call as it is known now: context, tool, input."""
Wrap = Callable[[Reply], types.CallToolResult]


class _NotStarted(Exception):
    """A server whose tools are unknown could not be started: the sentence says why."""


class ForwardedCalls:
    """The clients of the other servers, and their calls in progress."""

    def __init__(self, servers: Servers, wait_seconds: float, tasks: Tasks | None) -> None:
        self.servers = servers
        self._tasks = tasks
        self._wait_seconds = wait_seconds
        self._links: dict[str, McpClientLink] = {}
        self._paused: dict[str, tuple[str, ForwardedRequest]] = {}
        """Requests of clients of 2026-07-28 that ended with a question: the client's key and the request, by state."""
        self.on_resource_change: Callable[[str, str, Json], None] | None = None
        """Called for a client of 2026-07-28: its key, and the method and parameters of the notification."""

    def link(self, key: str, context: Context, workspace: str | None) -> McpClientLink:
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = McpClientLink(key, context, workspace, self.on_resource_change)
        link.update(context)
        return link

    def close(self, key: str) -> None:
        """A client has left, or was idle for so long that its servers are ended."""
        link = self._links.pop(key, None)
        if link is None:
            return
        link.has_left = True
        if self._tasks is not None:
            self._tasks.client_left(key)
        self.servers.close(key)
        for state, (owner, request) in list(self._paused.items()):
            if owner == key:
                del self._paused[state]
                request.drop_questions()

    def is_forwarded(self, context: Context) -> bool:
        """Whether a request is a call of another server's tool, by an initialized client."""
        name = (context.params or {}).get("name")
        is_open = (
            context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS
            or context.session.client_params is not None
        )
        return context.method == "tools/call" and isinstance(name, str) and SEPARATOR in name and is_open

    async def list(self, link: McpClientLink, version: str, own: Json) -> Json:
        """The listed tools: ours, then those of the servers."""
        async with anyio.create_task_group() as group:
            for name in self.servers.unknown:
                group.start_soon(self._await_tools, name, link)
        tools = own.get("tools")
        forwarded: list[JsonValue] = [
            set_task_support(_widened(tool.listed), version if self._tasks is not None else "")
            for tool in self.servers.list_tools(link.key)
        ]
        return {**own, "tools": [*(tools if isinstance(tools, list) else []), *forwarded]}

    async def _await_tools(self, server: str, link: McpClientLink) -> None:
        has_failed = self.servers.states[server].has_failed
        with anyio.move_on_after(FAILED_LIST_SECONDS if has_failed else LIST_SECONDS):
            await self.servers.prepare(server, link.key, link)

    async def call(
        self, link: McpClientLink, context: Context, submit: Submit, is_denied: IsDenied, wrap: Wrap
    ) -> Json:
        """Make the call, or continue the one whose questions the client now answers. Raises MCPError."""
        params = cast("Json", context.params)
        try:
            request, reply = await self.reply(
                link, context, lambda request: self._submit(link, request, params, submit, is_denied)
            )
        except _NotStarted as problem:
            if asks_for_task(context):
                raise MCPError(types.INTERNAL_ERROR, str(problem)) from None
            return _shape(context, {"content": [_text(str(problem))], "isError": True})
        if reply is None:
            return {"content": [_text("The client closed its stream.")], "isError": True}
        if isinstance(reply, dict):
            return reply
        if self._tasks is not None and (task := self._tasks.hand_over(context, reply, request, link.key)):
            return task
        return _shape(context, relayed_answer(reply, wrap))

    async def reply(
        self,
        link: McpClientLink,
        context: Context,
        submit: Callable[[ForwardedRequest], Awaitable[Reply | None]],
    ) -> tuple[ForwardedRequest, Reply | Json | None]:
        """Submit a request, or continue one whose questions the client now answers.

        Returns the request, and its reply, or a result if the server asks the client, or None if the client leaves first. Raises
        MCPError.
        """
        request = self._resume(link, context, cast("Json", context.params)) or ForwardedRequest(context)
        reply = await self._reply(link, request, submit)
        if reply is None or reply.outcome is not None:
            return request, reply
        asking = self._find_asking(link, reply.call) if reply.repeated else request
        if asking is not None and asking is not request and (answers := request.unasked_answers):
            asking.take_answers(context, answers)
            request, reply = asking, await self._reply(link, asking, submit)
        if asking is not None and asking.open_questions:
            return request, self._ask(link, asking)
        return request, reply

    async def _reply(
        self,
        link: McpClientLink,
        request: ForwardedRequest,
        submit: Callable[[ForwardedRequest], Awaitable[Reply | None]],
    ) -> Reply | None:
        """Submit a request, or wait for its call, which went on while the client was asked."""
        link.requests.append(request)
        try:
            if request.call is None:
                return await submit(request)
            if request.open_questions:  # the client did not answer all of them
                return Reply(call=request.call, outcome=request.call.outcome)
            return await self._wait(request, request.call)
        finally:
            request.is_answered = True
            link.requests.remove(request)

    def _find_asking(self, link: McpClientLink, call: Call) -> ForwardedRequest | None:
        """The client's request of this call, which ended with a question; its state is not valid any more."""
        for state, (owner, request) in self._paused.items():
            if owner == link.key and request.call is call:
                del self._paused[state]
                return request
        return None

    async def _submit(
        self,
        link: McpClientLink,
        request: ForwardedRequest,
        params: Json,
        submit: Submit,
        is_denied: IsDenied,
    ) -> Reply | None:
        name, arguments = str(params["name"]), params.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise MCPError(types.INVALID_PARAMS, "`arguments` has to be an object.")
        server = name.partition(SEPARATOR)[0]
        is_stopped = self.servers.expect(name) and not self.servers.connection(server, link.key)
        if is_stopped and not await is_denied(request.context, name, arguments):
            problem = await self.servers.prepare(server, link.key, link)
            if problem and server in self.servers.unknown:
                raise _NotStarted(problem)
        progress = _CallProgress(link, request)

        def opened(call: Call) -> None:
            request.call = call
            meta = _passed_meta(params)
            route = Route(
                key=link.key,
                link=link,
                meta=meta,
                on_progress=progress.pass_on,
                origin=request,
                answers=request.unasked_answers,
            )
            self.servers.bind(call.id, route)

        return await submit(request.context, name, arguments, opened, progress.report_waiting)

    def _ask(self, link: McpClientLink, request: ForwardedRequest) -> Json:
        """End the request of a client of 2026-07-28 with the questions of the server."""
        self._forget_settled(link)
        state = secrets.token_urlsafe(24)
        self._paused[state] = (link.key, request)
        return {
            "resultType": "input_required",
            "inputRequests": request.wire_questions,
            "requestState": state,
        }

    def _forget_settled(self, link: McpClientLink) -> None:
        settled = [
            state
            for state, (owner, request) in self._paused.items()
            if owner == link.key and request.call is not None and request.call.outcome is not None
        ]
        for state in settled[:-SETTLED_MAX]:
            del self._paused[state]

    def _resume(self, link: McpClientLink, context: Context, params: Json) -> ForwardedRequest | None:
        state = params.get("requestState")
        if state is None:
            return None
        key, request = self._paused.get(str(state), ("", None))
        if request is None or key != link.key or not request.is_repeated(params):
            raise MCPError(
                types.INVALID_PARAMS, "This `requestState` is unknown: call the tool again without it."
            )
        del self._paused[str(state)]
        answers = params.get("inputResponses")
        request.take_answers(context, answers if isinstance(answers, dict) else {})
        return request

    async def _wait(self, request: ForwardedRequest, call: Call) -> Reply:
        """Wait for the outcome of a call that went on, or its next question, as long as the client is patient."""
        with anyio.move_on_after(self._wait_seconds):
            async with anyio.create_task_group() as group:

                async def watch_questions() -> None:
                    await request.asked.wait()
                    group.cancel_scope.cancel()

                group.start_soon(watch_questions)
                await call.settled()
                group.cancel_scope.cancel()
        return Reply(call=call, outcome=call.outcome)


FIRST_BEAT_SECONDS = 1.0
BEAT_SECONDS = 10.0
"""As for our own tools: a call that waits for a person reports soon, then at an interval below all idle timeouts."""
BEAT_STEP = 1e-9
"""Messages without a number, such as our signs of life, must rise too, and stay below what the server reports later."""


class _CallProgress:
    """The progress of one call, on its way to the client."""

    def __init__(self, link: McpClientLink, request: ForwardedRequest) -> None:
        self._link, self._request = link, request
        self._reported = anyio.Event()
        """The server reports by itself."""
        self._last = 0.0

    async def pass_on(self, progress: Json) -> None:
        """Send what the server reports. The state of a task has a message only."""
        self._reported.set()
        value = progress.get("progress")
        if value is None:
            await self._send_message(str(progress.get("message", "")))
            return
        self._last = float(value) if isinstance(value, int | float) else self._last
        await self._link.report(self._request, progress)

    async def report_waiting(self, call: Call) -> None:
        """Report that the call goes on, until its server reports by itself."""
        pause = FIRST_BEAT_SECONDS
        while not self._reported.is_set():
            with anyio.move_on_after(pause):
                await self._reported.wait()
                return
            doing = "waiting for a person" if call.status == "waiting" else "running"
            await self._send_message(f"{doing} for {call.elapsed_ms / 1000:.0f} s")
            pause = BEAT_SECONDS

    async def _send_message(self, message: str) -> None:
        self._last = max(self._last + BEAT_STEP, math.nextafter(self._last, math.inf))
        await self._link.report(self._request, {"progress": self._last, "message": message})


def _passed_meta(params: Json) -> Json:
    """The metadata of a request for the server, without what concerns our own connection."""
    meta = params.get("_meta")
    fields = meta if isinstance(meta, dict) else {}
    return {
        name: value
        for name, value in fields.items()
        if name != "progressToken" and not name.startswith(_OWN_META)
    }


def relayed_answer(reply: Reply, wrap: Wrap) -> Json:
    """The server's own answer, if the call ended with it; else a result of ours. Raises MCPError."""
    call, outcome = reply.call, reply.outcome
    if outcome is None or outcome.ending not in ("done", "failed"):
        return _wrapped(wrap(reply))
    relayed = call.relayed
    if relayed is None:
        return _recorded_answer(outcome) or _wrapped(wrap(reply))
    error = relayed.get("error")
    if isinstance(error, dict):
        server = call.tool.partition(SEPARATOR)[0]
        data = name_server_in_links(server, error.get("data"))
        raise MCPError(cast("int", error["code"]), str(error["message"]), data)
    return _with_feedback(cast("Json", relayed["result"]), outcome)


def _recorded_answer(outcome: Outcome) -> Json | None:
    """The server's answer as far as it is on record, for a call whose answer is not at hand any more. Raises MCPError."""
    result = outcome.result
    error = None if result is None else result.data.get("error")
    if isinstance(error, dict):
        raise MCPError(cast("int", error["code"]), str(error["message"]))
    structured = None if result is None else result.data.get("structured")
    if result is None or not isinstance(structured, dict):
        return None
    return {
        "content": [_text(result.text)],
        "structuredContent": structured,
        "isError": outcome.ending == "failed",
    }


def _with_feedback(result: Json, outcome: Outcome) -> Json:
    """The server's result, and what the person who allowed the call changed or said."""
    data = {} if outcome.result is None else outcome.result.data
    says = [name for name in ("edited", "person_says") if name in data]
    if not says or outcome.result is None:
        return result
    first = outcome.result.text.partition("\n\n")[0]
    content = result.get("content")
    return {**result, "content": [_text(first), *(content if isinstance(content, list) else [])]}


def _wrapped(result: types.CallToolResult) -> Json:
    """A result of ours without the server's structure: strict clients check that against the output schema.

    The text is in the structure too, because some clients (Codex) show the model nothing else.
    """
    data = cast("Json", result.structured_content or {})
    texts = [each.text for each in result.content if isinstance(each, types.TextContent)]
    facts: Json = {name: data[name] for name in ("status", "call_id") if name in data}
    facts["message"] = "\n".join(texts)
    return {
        "content": [_text(each) for each in texts],
        "structuredContent": {"handrail": facts},
        "isError": result.is_error,
    }


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _shape(context: Context, result: Json) -> Json:
    """The result in the client's generation."""
    if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return {name: value for name, value in result.items() if name != "resultType"}
    return {"resultType": "complete", **result}


def _widened(tool: Json) -> Json:
    """The definition with an output schema that our own results fit too."""
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict):
        return tool
    definitions = {name: schema[name] for name in ("$schema", "$defs", "definitions") if name in schema}
    own = {name: value for name, value in schema.items() if name not in definitions}
    return {**tool, "outputSchema": {**definitions, "type": "object", "anyOf": [own, _OURS]}}
