"""Results of tool calls in MCP's format, and their output schemas. A result has the same shape however the call ended."""

import base64
import logging
from typing import Any, Literal, assert_never, cast

import mcp_types as types
from pydantic import BaseModel, Field, JsonValue, TypeAdapter, create_model

from handrail.errors import Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Reply
from handrail.gate.tool import Image, Tool
from handrail.store.calls import Status
from handrail.store.values import Json, Receipt, Result

log = logging.getLogger(__name__)

_RECEIPT = TypeAdapter(Receipt)
EXPIRED = "expired"
"""The `reason` of a call whose approval expired, to tell it from a denial."""

SHOW_STRUCTURE_ONLY = ("codex",)
"""Clients, by the start of their name, that give their model only the structured content of a result, and so no image."""

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
    told = _result(_text(call, outcome), data, is_error=is_error, image=image)
    if image is not None and call.caller.client.lower().startswith(SHOW_STRUCTURE_ONLY):
        told.structured_content = None
    return told


def refused_result(tool: str, sentence: str) -> types.CallToolResult:
    """The result of a call that could not be recorded. Nothing was run."""
    data: Json = {"status": "failed", "call_id": "", "tool": tool, "message": sentence, "reason": sentence}
    return _result(sentence, data, is_error=True)


def failed_result(tool: str, error: Exception) -> types.CallToolResult:
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
    if call.status == "waiting" and call.plan is not None:
        return (
            "waiting",
            f"It has run, and waits for a person to look at its result. Do not start it again. {then}",
        )
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
        case "denied":  # after a result that is withheld, the body says that the call has run
            reason = f" Reason: {outcome.sentence}" if outcome.message else " No reason was given."
            return f"Denied by {outcome.by}.{reason} {body or 'Nothing was run.'}"
        case "failed":
            return f"{outcome.message}\n\n{body}" if body else outcome.message
        case "cancelled" | "completed" | "interrupted":
            left = f" Call {call.id}; get_call has its final receipt."
            return f"{outcome.sentence}{left}\n\n{body}" if body else f"{outcome.sentence}{left}"
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
