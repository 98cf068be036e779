"""The MCP tool `approve`, for Claude Code's `--permission-prompt-tool mcp__handrail__approve`.

Claude Code takes exactly one text block, whose text is JSON: a result with structured content counts as a denial. So this
tool has no output schema, and its result is not that of other tools. The call that a person sees is the one that a hook
would open.

Claude Code does not say where the MCP server of a call comes from, and a project can name its own server `handrail`. A server
with our name is ours only if the client's command line names this tool under it: then it is us who are asked under that name.
"""

import json
import sys
from itertools import pairwise
from typing import Annotated

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail.clients.hook_event import Verdict
from handrail.clients.open_work import ClientProcess
from handrail.server.client_hooks import Hooks
from handrail.store.values import Caller, Json
from handrail.terminal.person_check import read_arguments

OPTION = "--permission-prompt-tool"
OUR_NAME = "mcp__handrail__approve"
NOT_NAMED = f"This MCP server has Handrail's name, but this client was not started with {OPTION} {OUR_NAME}."


class ApproveInput(BaseModel):
    """What Claude Code sends. Unknown fields are ignored: newer versions may send more."""

    model_config = ConfigDict(extra="ignore")

    tool_name: Annotated[str, Field(description="The tool that the client is about to use.", min_length=1)]
    input: Annotated[Json, Field(description="Its input.")]
    tool_use_id: Annotated[str, Field(description="The client's id of the tool call.")] = ""


APPROVE = types.Tool(
    name="approve",
    title="Approve a client's own tool call",
    description=(
        "Only for Claude Code itself, as its --permission-prompt-tool. A model must not call this: it runs nothing, and its "
        "answer allows nothing."
    ),
    input_schema=ApproveInput.model_json_schema(),
    annotations=types.ToolAnnotations(
        title="Approve a client's own tool call",
        read_only_hint=True,
        destructive_hint=False,
        idempotent_hint=False,
        open_world_hint=False,
    ),
)


async def approve(
    hooks: Hooks, caller: Caller, arguments: Json, client: ClientProcess | None
) -> types.CallToolResult:
    """The decision about a tool call of Claude Code, in its format."""
    doubt = "" if _has_our_name(client) else NOT_NAMED
    try:
        asked = ApproveInput.model_validate(arguments)
        verdict = await hooks.approve(caller, asked.tool_name, asked.input, asked.tool_use_id, doubt)
    except ValidationError:
        return _text_result(_deny("approve needs the text `tool_name` and the object `input`."))
    except ValueError as problem:
        return _text_result(_deny(f"Handrail cannot judge this call. {problem}"))
    return _text_result(_decision(verdict, asked.input))


def _has_our_name(client: ClientProcess | None) -> bool:
    """Whether the server that a client calls `handrail` is ours. Where no process can be read, the name has to do."""
    if sys.platform != "linux":
        return True
    words = () if client is None else read_arguments((client.pid, client.start))
    return f"{OPTION}={OUR_NAME}" in words or (OPTION, OUR_NAME) in pairwise(words)


def _decision(verdict: Verdict, asked: Json) -> Json:
    if verdict.effect == "deny":
        return _deny(verdict.reason)
    # Older versions of Claude Code require the input, even if it is unchanged.
    return {"behavior": "allow", "updatedInput": asked if verdict.input is None else verdict.input}


def _deny(reason: str) -> Json:
    return {"behavior": "deny", "message": reason}


def _text_result(decision: Json) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=json.dumps(decision))]
    return types.CallToolResult(content=content, is_error=False)
