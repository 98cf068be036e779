"""Resources, prompts, completions, subscriptions and log levels of the MCP servers behind Handrail.

Reading a resource or a prompt is a call, which is recorded and which a rule can refuse. The rest passes as it is.
"""

from collections.abc import Awaitable, Callable
from typing import cast

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import JsonValue

from handrail.gate.call import Call
from handrail.gate.gate import Reply
from handrail.gate.tool import Refusal
from handrail.server.mcp._client_link import Context, ForwardedRequest, McpClientLink
from handrail.server.mcp._forwarded_calls import ForwardedCalls
from handrail.store.values import Json
from handrail.upstream.feature_tools import GET_PROMPT, READ_RESOURCE
from handrail.upstream.features import LISTS, Features
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError
from handrail.upstream.servers import Route, Servers

METHODS = frozenset(
    (
        *LISTS,
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "notifications/roots/list_changed",
    )
)
_REMOVED = frozenset(("resources/subscribe", "resources/unsubscribe", "logging/setLevel"))
"""Methods that MCP 2026-07-28 does not have."""
_OF_THE_REQUEST = ("_meta", "requestState", "inputResponses")
"""Parameters that are between us and the client."""
CAPABILITIES = ("resources", "prompts", "completions", "logging")

Submit = Callable[[str, Json, Callable[[Call], None]], Awaitable[Reply | None]]
"""Submit a call: tool, input, and what to do with the opened call."""


class RelayedFeatures:
    """Answers the requests of clients that concern the servers behind Handrail."""

    def __init__(self, servers: Servers, forwarded: ForwardedCalls) -> None:
        self._servers, self._forwarded = servers, forwarded
        self.features = self._features = Features(servers)

    def relayed_capabilities(self) -> list[str]:
        """What some server may have."""
        return [name for name in CAPABILITIES if self._features.has(name)]

    def has_method(self, context: Context) -> bool:
        """Whether a request is one of these, in the client's generation."""
        is_old = context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        return context.method in METHODS and (is_old or context.method not in _REMOVED)

    async def handle(self, link: McpClientLink, context: Context, submit: Submit) -> Json:
        """Answer a request, or pass a notification on. Raises MCPError."""
        try:
            result = await self._answer(link, context, cast("Json", context.params or {}), submit)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None
        except (ConnectionLost, Refusal) as problem:
            raise MCPError(INTERNAL_ERROR, str(problem)) from None
        if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            return result
        if result.get("resultType") == "input_required":
            return result
        lasting: Json = {"ttlMs": 0, "cacheScope": "private"}
        return {"resultType": "complete", **lasting, **result}

    async def _answer(  # noqa: PLR0911 - a line for each method
        self, link: McpClientLink, context: Context, params: Json, submit: Submit
    ) -> Json:
        method = context.method
        match method:
            case "resources/read":
                owner = await self._features.find_owner(str(params.get("uri")), link.key, link)
                return await self._read(link, context, READ_RESOURCE, owner, params, submit)
            case "prompts/get":
                owner, name = self._features.split_prompt(params.get("name"))
                return await self._read(link, context, GET_PROMPT, owner, {**params, "name": name}, submit)
            case "resources/subscribe" | "resources/unsubscribe":
                owner = await self._features.find_owner(str(params.get("uri")), link.key, link)
                return await self._pass(link, owner, method, params)
            case "completion/complete":
                return await self._complete(link, params)
            case "logging/setLevel":
                return await self._set_level(link, params)
            case "notifications/roots/list_changed":
                for connection in self._servers.connections(link.key):
                    connection.notify(method, {})
                return {}
            case _:
                return await self._features.list_entries(method, link.key, link)

    async def _read(
        self, link: McpClientLink, context: Context, tool: str, server: str, params: Json, submit: Submit
    ) -> Json:
        own = {name: value for name, value in params.items() if name not in _OF_THE_REQUEST}

        async def submit_request(request: ForwardedRequest) -> Reply | None:
            def opened(call: Call) -> None:
                request.call = call
                route = Route(key=link.key, link=link, origin=request, answers=request.unasked_answers)
                self._servers.bind(call.id, route)

            return await submit(tool, {"server": server, "params": own}, opened)

        _, reply = await self._forwarded.reply(link, context, submit_request)
        if isinstance(reply, dict):
            return reply
        if reply is None or reply.outcome is None:
            raise RpcError(INTERNAL_ERROR, f"{server} did not answer in time.")
        relayed = reply.call.relayed or {}
        result, error = relayed.get("result"), relayed.get("error")
        if isinstance(result, dict) and reply.outcome.ending == "done":
            return result
        if isinstance(error, dict):
            raise RpcError(cast("int", error["code"]), str(error["message"]), error.get("data"))
        raise RpcError(INTERNAL_ERROR, reply.outcome.message or f"The call was {reply.outcome.ending}.")

    async def _pass(self, link: McpClientLink, server: str, method: str, params: Json) -> Json:
        async with self._servers.using(server, link.key, link) as connection:
            return await connection.request(method, {k: v for k, v in params.items() if k != "_meta"})

    async def _complete(self, link: McpClientLink, params: Json) -> Json:
        ref: JsonValue = params.get("ref")
        fields = ref if isinstance(ref, dict) else {}
        if fields.get("type") == "ref/prompt":
            owner, name = self._features.split_prompt(fields.get("name"))
            return await self._pass(
                link, owner, "completion/complete", {**params, "ref": {**fields, "name": name}}
            )
        owner = await self._features.find_owner(str(fields.get("uri")), link.key, link)
        return await self._pass(link, owner, "completion/complete", params)

    async def _set_level(self, link: McpClientLink, params: Json) -> Json:
        """Set the level of the servers that run, and of those that are started later."""
        link.log_level = str(params.get("level"))
        for connection in self._servers.connections(link.key):
            if connection.has("logging"):
                await connection.request("logging/setLevel", {"level": link.log_level})
        return {}
