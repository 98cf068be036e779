"""Reading a resource or a prompt of an MCP server, as calls of the gate: recorded, and refused by rules that say so."""

from collections.abc import Callable
from typing import Annotated, Protocol

from pydantic import Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.values import Caller, Claim, Json, Result
from handrail.upstream.forwarded_tool import ForwardedInput, ForwardedOutput
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError

READ_RESOURCE = "read_server_resource"
GET_PROMPT = "get_server_prompt"
RECORDED_MAX = 20_000
"""Characters of a resource that are kept in the journal. The client gets all of it."""


class FeatureInput(ForwardedInput):
    """What the client asks a server for."""

    server: Annotated[str, Field(max_length=100)]
    params: Annotated[Json, Field(description="The parameters of the request.")]


class FeaturePlan(Plan):
    """A request without an effect that Handrail knows of."""


class Requester(Protocol):
    """Sends a request to a server."""

    async def request(self, server: str, method: str, params: Json, call: CallReport) -> Json:
        """The server's result. Raises Refusal, RpcError or ConnectionLost."""
        ...

    def mask(self, text: str) -> str:
        """The text without the values of secrets: what is recorded."""
        ...


class FeatureTool(Tool[FeatureInput, FeaturePlan]):
    """One kind of request, such as `resources/read`."""

    input, output = FeatureInput, ForwardedOutput
    description = "Only for Handrail's own use."
    assurance = "forwarded"
    listed = False
    edits = False
    repeats = True
    reads_only = True
    takes_remarks = False

    def __init__(
        self, name: str, title: str, method: str, describe: Callable[[Json], str], requester: Requester
    ) -> None:
        self.name, self.title = name, title
        self._method, self._describe, self._requester = method, describe, requester

    def display(self, input: FeatureInput) -> str:
        return f"{input.server} {self._describe(input.params)}"[:80]

    async def plan(self, input: FeatureInput, caller: Caller) -> FeaturePlan:
        resource = f"{input.server} {self._describe(input.params)}"
        claim = Claim(action="read", resource=resource, inside=True, server=input.server)
        return FeaturePlan(claims=(claim,), bound={}, server=input.server)

    async def run(self, plan: FeaturePlan, call: CallReport) -> Result:
        params, server = call.input["params"], str(plan.server)
        try:
            result = await self._requester.request(
                server, self._method, params if isinstance(params, dict) else {}, call
            )
        except RpcError as error:
            call.relay({"error": error.wire})
            raise Refusal(f"{server} answered with an error: {error.excerpt}") from None
        except ConnectionLost as lost:
            raise Refusal(str(lost)) from None
        call.relay({"result": result})
        return Result(text=self._requester.mask(_text_of(result))[:RECORDED_MAX], data={})


def build_feature_tools(requester: Requester) -> list[FeatureTool]:
    return [
        FeatureTool(
            READ_RESOURCE,
            "Read a server's resource",
            "resources/read",
            lambda params: f"resource {params.get('uri')}",
            requester,
        ),
        FeatureTool(
            GET_PROMPT,
            "Get a server's prompt",
            "prompts/get",
            lambda params: f"prompt {params.get('name')}",
            requester,
        ),
    ]


def _text_of(result: Json) -> str:
    """The text in a resource or a prompt."""
    contents = result.get("contents", result.get("messages"))
    found: list[str] = []
    for each in contents if isinstance(contents, list) else []:
        block = each.get("content", each) if isinstance(each, dict) else None
        text = block.get("text") if isinstance(block, dict) else None
        found.append(text if isinstance(text, str) else "[not text]")
    return "\n".join(found)
