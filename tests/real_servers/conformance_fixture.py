"""The MCP server that the conformance suite's scenarios describe: the tools, resources and prompts that they use by name.

Made with the official SDK, for both generations of the protocol. Tools whose names in the suite begin with
`test_input_required_result_` are called `rounds_…` here: with the prefix of a server, the suite's names are longer than
the 40 characters that Handrail offers (`SuiteNames` in suite_names.py).
"""

import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from starlette.applications import Starlette
from tests.real_servers.conformance_data import (
    CHOICES,
    DEFAULTS,
    IMAGE_URI,
    NOTHING,
    PIXEL,
    PROMPTS,
    RESOURCES,
    SCHEMAS,
    SOUND,
    TEMPLATES,
    TEXT_URI,
    WATCHED_URI,
)
from tests.support.mcp_servers.event_store import MemoryEventStore

Json = dict[str, Any]
Context = ServerRequestContext[Any, Any]
Tool = Callable[[Context, types.CallToolRequestParams], Awaitable[Json]]

PAUSE = 0.02
MISSING_CAPABILITY = -32021
INVALID_PARAMS = -32602


def said(text: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": text}], **more}


def form(message: str, **properties: Json) -> Json:
    """The parameters of an elicitation."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def elicit(message: str, field: str, kind: str = "string") -> Json:
    return {"method": "elicitation/create", "params": form(message, **{field: {"type": kind}})}


def sample(text: str) -> Json:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 50}}


ROOTS: Json = {"method": "roots/list", "params": {}}
NAME = elicit("What is your name?", "name")
CONFIRM = elicit("Please confirm", "ok", "boolean")


def ask(state: str | None = None, **requests: Json) -> Json:
    """A result that asks for the call again, with answers."""
    asked: Json = {"resultType": "input_required", "inputRequests": requests}
    return asked if state is None else {**asked, "requestState": state}


def answers(params: types.CallToolRequestParams | types.GetPromptRequestParams) -> Json:
    found = params.input_responses or {}
    return {name: each.model_dump(by_alias=True, exclude_none=True) for name, each in found.items()}


class Tools:
    """A method for each tool, by its name."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        self.added: list[str] = []
        """Names of tools that came later."""

    @property
    def all(self) -> dict[str, Tool]:
        own = [name for name in dir(self) if name.startswith(("test_", "rounds_", "json_"))]
        added = dict.fromkeys(self.added, self.test_simple_text)
        return {**{name: getattr(self, name) for name in own}, **added}

    async def test_simple_text(self, context: Context, params: object) -> Json:
        return said("Some text.")

    async def test_image_content(self, context: Context, params: object) -> Json:
        return {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}

    async def test_audio_content(self, context: Context, params: object) -> Json:
        return {"content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]}

    async def test_embedded_resource(self, context: Context, params: object) -> Json:
        resource = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "Within."}
        return {"content": [{"type": "resource", "resource": resource}]}

    async def test_multiple_content_types(self, context: Context, params: object) -> Json:
        parts = [
            (await tool(context, params))["content"][0]
            for tool in (self.test_simple_text, self.test_image_content, self.test_embedded_resource)
        ]
        return {"content": parts}

    async def test_tool_with_logging(self, context: Context, params: object) -> Json:
        for step in ("started", "processing", "completed"):
            await log(context, f"Tool {step}")
            await anyio.sleep(PAUSE)
        return said("Logged.")

    async def test_tool_with_progress(self, context: Context, params: object) -> Json:
        for step in (0, 50, 100):
            await context.session.report_progress(step, 100, f"{step} of 100")
            await anyio.sleep(PAUSE)
        return said("Reported.")

    async def test_error_handling(self, context: Context, params: object) -> Json:
        return said("It did not work, as intended.", isError=True)

    async def test_reconnection(self, context: Context, params: object) -> Json:
        """Closes its stream in the middle; the answer is there when the client comes back."""
        if context.close_sse_stream is not None:
            await context.close_sse_stream()
        await anyio.sleep(0.1)
        return said("Back again.")

    async def test_sampling(self, context: Context, params: types.CallToolRequestParams) -> Json:
        asked = types.CreateMessageRequest.model_validate(sample(str((params.arguments or {}).get("prompt"))))
        return said(str(await send(context, asked, types.CreateMessageResult)))

    async def test_elicitation(self, context: Context, params: types.CallToolRequestParams) -> Json:
        return await elicit_form(
            context, form(str((params.arguments or {}).get("message")), response={"type": "string"})
        )

    async def test_elicitation_sep1034_defaults(self, context: Context, params: object) -> Json:
        return await elicit_form(context, form("Look at these.", **DEFAULTS))

    async def test_elicitation_sep1330_enums(self, context: Context, params: object) -> Json:
        return await elicit_form(context, form("Choose.", **CHOICES))

    async def json_schema_2020_12_tool(self, context: Context, params: object) -> Json:
        return said("Fine.")

    async def test_x_mcp_header(self, context: Context, params: types.CallToolRequestParams) -> Json:
        return said(f"region={(params.arguments or {}).get('region')}")

    async def test_missing_capability(self, context: Context, params: object) -> Json:
        if not has(context, "sampling"):
            needed: Json = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_CAPABILITY, "This needs sampling.", needed)
        return said("The client has sampling.")

    async def test_streaming_elicitation(self, context: Context, params: types.CallToolRequestParams) -> Json:
        return await self.rounds_elicitation(context, params)

    async def test_logging_tool(self, context: Context, params: object) -> Json:
        await log(context, "Only if you asked for it")
        return said("Done.")

    async def test_trigger_tool_change(self, context: Context, params: object) -> Json:
        self.added.append(f"test_added_{len(self.added) + 1}")
        await self._bus.publish(ToolsListChanged())
        return said("Changed.")

    async def test_trigger_prompt_change(self, context: Context, params: object) -> Json:
        await self._bus.publish(PromptsListChanged())
        return said("Changed.")

    async def rounds_elicitation(self, context: Context, params: types.CallToolRequestParams) -> Json:
        given = answers(params).get("user_name")
        return ask(user_name=NAME) if given is None else said(f"Hello, {given['content']['name']}!")

    async def rounds_sampling(self, context: Context, params: types.CallToolRequestParams) -> Json:
        given = answers(params).get("capital_question")
        return ask(capital_question=sample("Which city?")) if given is None else said(str(given["content"]))

    async def rounds_list_roots(self, context: Context, params: types.CallToolRequestParams) -> Json:
        given = answers(params).get("client_roots")
        return ask(client_roots=ROOTS) if given is None else said(str(given["roots"]))

    async def rounds_request_state(self, context: Context, params: types.CallToolRequestParams) -> Json:
        if params.request_state != "confirming" or "confirm" not in answers(params):
            return ask("confirming", confirm=CONFIRM)
        return said("state-ok")

    async def rounds_multiple_inputs(self, context: Context, params: types.CallToolRequestParams) -> Json:
        wanted = {"user_name": NAME, "greeting": sample("Greet them"), "client_roots": ROOTS}
        given = answers(params)
        return said(str(sorted(given))) if wanted.keys() <= given.keys() else ask("three", **wanted)

    async def rounds_multi_round(self, context: Context, params: types.CallToolRequestParams) -> Json:
        given = answers(params)
        match params.request_state:
            case "first" if "step1" in given:
                return ask("second", step2=elicit("Step 2: Which colour?", "color"))
            case "second" if "step2" in given:
                return said(str(given["step2"]["content"]["color"]))
            case _:
                return ask("first", step1=elicit("Step 1: What is your name?", "name"))

    async def rounds_tampered_state(self, context: Context, params: types.CallToolRequestParams) -> Json:
        return ask("sealed", confirm=CONFIRM) if params.request_state is None else said("state-ok")

    async def rounds_capabilities(self, context: Context, params: types.CallToolRequestParams) -> Json:
        able = {"elicitation": NAME, "sampling": sample("Say hello")}
        wanted = {name: request for name, request in able.items() if has(context, name)}
        return said(str(sorted(answers(params)))) if params.input_responses else ask("able", **wanted)


def has(context: Context, name: str) -> bool:
    declared = context.session.client_capabilities
    return declared is not None and getattr(declared, name) is not None


async def log(context: Context, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await context.session.send_log_message("info", text, related_request_id=context.request_id)  # pyright: ignore[reportDeprecated]


async def send(context: Context, request: Any, result: Any) -> Json:
    """Ask the client on the stream of its request; an error of it becomes a result."""
    from mcp.shared.message import ServerMessageMetadata  # noqa: PLC0415

    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    answer = await context.session.send_request(request, result, metadata=metadata)
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


async def elicit_form(context: Context, params: Json) -> Json:
    request = types.ElicitRequest.model_validate({"method": "elicitation/create", "params": params})
    return said(json.dumps(await send(context, request, types.ElicitResult)))


async def read(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == IMAGE_URI:
        content: Json = {"uri": uri, "mimeType": "image/png", "blob": PIXEL}
    elif uri in (TEXT_URI, WATCHED_URI):
        content = {"uri": uri, "mimeType": "text/plain", "text": "The text of this resource."}
    elif uri.startswith("test://template/"):
        number = uri.split("/")[3]
        content = {"uri": uri, "mimeType": "application/json", "text": json.dumps({"id": number})}
    else:
        raise MCPError(INVALID_PARAMS, "There is no such resource.", {"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [content]})


async def prompt(
    context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            content: Json = {"type": "text", "text": "A simple prompt."}
        case "test_prompt_with_arguments":
            content = {"type": "text", "text": f"arg1={given['arg1']} arg2={given['arg2']}"}
        case "test_prompt_with_embedded_resource":
            resource = {"uri": given["resourceUri"], "mimeType": "text/plain", "text": "Within."}
            content = {"type": "resource", "resource": resource}
        case "test_prompt_with_image":
            content = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        case "rounds_prompt" if "user_context" not in answers(params):
            return types.InputRequiredResult.model_validate(
                ask(user_context=elicit("Which context?", "context"))
            )
        case "rounds_prompt":
            content = {"type": "text", "text": str(answers(params)["user_context"])}
        case _:
            raise MCPError(INVALID_PARAMS, "There is no such prompt.")
    return types.GetPromptResult.model_validate({"messages": [{"role": "user", "content": content}]})


def build_app() -> Starlette:
    """The server over streamable HTTP, at `/mcp`."""
    bus = InMemorySubscriptionBus()
    tools = Tools(bus)

    async def list_tools(context: Context, params: object) -> types.ListToolsResult:
        listed = [
            {"name": name, "description": f"For {name}.", "inputSchema": SCHEMAS.get(name, NOTHING)}
            for name in tools.all
        ]
        return types.ListToolsResult.model_validate({"tools": listed})

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = tools.all.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name}.")
        result = await tool(context, params)
        model = types.InputRequiredResult if "resultType" in result else types.CallToolResult
        return model.model_validate(result)

    async def list_resources(context: Context, params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": RESOURCES})

    async def list_templates(context: Context, params: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": TEMPLATES})

    async def list_prompts(context: Context, params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": PROMPTS})

    async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        values = [f"{params.argument.value}!"]
        return types.CompleteResult.model_validate({"completion": {"values": values, "hasMore": False}})

    async def nothing(context: Context, params: object) -> types.EmptyResult:
        return types.EmptyResult()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        server: Server[Any] = Server(  # pyright: ignore[reportDeprecated]
            "conformance",
            version="1",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read,
            on_subscribe_resource=nothing,
            on_unsubscribe_resource=nothing,
            on_subscriptions_listen=ListenHandler(bus),
            on_list_prompts=list_prompts,
            on_get_prompt=prompt,
            on_completion=complete,
            on_set_logging_level=nothing,
            get_tool_input_schema=lambda name: SCHEMAS.get(name, NOTHING),
        )
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="conformance")
    )
    return server.streamable_http_app(event_store=MemoryEventStore(), retry_interval=100)
