"""A call's reply in the dialect of MCP: one shape for every way a call can end.

Owns the words and fields agents read: statuses such as `force-completed`, receipts, hand-back. It does not know how
the result travels.

JSON schemas said shortly: a client checks every result against one, and all of them are in every list of
tools.
"""

from typing import Any, Literal, assert_never, cast

import mcp_types as types
from pydantic import BaseModel, Field, JsonValue, TypeAdapter, create_model

from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Reply
from handrail.gate.tool import Tool
from handrail.store.calls import Status
from handrail.store.values import Json, Receipt, Result

_RECEIPT = TypeAdapter(Receipt)
EXPIRED = "expired"
"""The reason of a call that nobody answered for in time: that is not a denial."""

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
    """One schema that holds for every way a call of this tool can end."""
    model = create_model(f"{tool.name}_output", __base__=(tool.output, CommonOutput))
    return short(model.model_json_schema(mode="serialization"))


def to_result(reply: Reply, so_far: Result | None = None) -> types.CallToolResult:
    """The reply as a tool result; `so_far` is what an open call already has to give."""
    call, outcome = reply.call, reply.outcome
    if outcome is None:
        return _handed_back(call, reply.repeated, so_far or Result(text="", data={}))
    data = {**(outcome.result.data if outcome.result else {}), **_common(call, wire_status(outcome.ending))}
    if outcome.message:
        data["message"] = outcome.message
    if outcome.ending in ("denied", "failed"):
        data["reason"] = EXPIRED if _has_expired(call) else outcome.message
    data["receipt"] = _receipt(call)
    is_error = outcome.ending in ("failed", "denied", "cancelled", "interrupted")
    return _result(_words(call, outcome), data, is_error=is_error)


def refused(tool: str, sentence: str) -> types.CallToolResult:
    """A call that could not even be recorded; nothing was run."""
    data: Json = {"status": "failed", "call_id": "", "tool": tool, "message": sentence, "reason": sentence}
    return _result(sentence, data, is_error=True)


def wire_status(status: Status) -> WireStatus:
    return "force-completed" if status == "completed" else status


def _has_expired(call: Call) -> bool:
    return call.approval is not None and call.approval.expired_ms is not None


def _handed_back(call: Call, repeated: bool, so_far: Result) -> types.CallToolResult:
    again = "This very call is open already and was not started again. " if repeated else ""
    status, state = _state(call, so_far.data.get("waiting_for_input"))
    message = f"{again}{state}"
    data = {**so_far.data, **_common(call, status), "message": message}
    text = f"{message}\n\nSo far:\n{so_far.text}" if so_far.text else message
    return _result(text, data, is_error=False)


def _state(call: Call, asks: JsonValue) -> tuple[WireStatus, str]:
    """What an open call waits for, and what to do about it."""
    then = f'Call wait_for_call with call_id "{call.id}" for its outcome.'
    if call.status == "waiting":
        return "waiting", f"It waits for a person to approve it; nothing has been run. {then}"
    if isinstance(asks, dict):
        return "waiting_for_input", str(asks["advice"])
    return wire_status(call.status), f"It is still running after {call.elapsed_ms / 1000:.0f} s. {then}"


def _common(call: Call, status: WireStatus) -> Json:
    found: Json = {"status": status, "call_id": call.id, "tool": call.tool, "elapsed_ms": call.elapsed_ms}
    if call.terminal is not None:
        found["terminal_id"] = call.terminal
    return found


def _receipt(call: Call) -> Json:
    return _RECEIPT.dump_python(call.receipt, mode="json")


def _words(call: Call, outcome: Outcome) -> str:
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


def _result(text: str, data: Json, *, is_error: bool) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)


_LISTS = {"enum", "const"}
"""What names the valid values themselves, so that null would have to be named there, too."""


def short(schema: Json) -> Json:
    """The schema without titles and defaults, references written out (none to itself), "or null" as a type."""
    definitions = cast("Json", schema.get("$defs", {}))
    return cast(
        "Json", _short({name: value for name, value in schema.items() if name != "$defs"}, definitions)
    )


def _short(schema: JsonValue, definitions: Json) -> JsonValue:
    if isinstance(schema, list):
        return [_short(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        return _short(definitions[reference.removeprefix("#/$defs/")], definitions)
    kept = {name: value for name, value in schema.items() if not _is_noise(name, value)}
    return _or_null({name: _short(value, definitions) for name, value in kept.items()})


def _is_noise(name: str, value: JsonValue) -> bool:
    """A property may be called `title` or `default`, but then it is a schema itself."""
    return (name == "title" and isinstance(value, str)) or (name == "default" and not isinstance(value, dict))


def _or_null(schema: Json) -> Json:
    match schema:
        case {"anyOf": [{"type": str(kind), **rest}, {"type": "null"}], **others} if not _LISTS & rest.keys():
            return {**rest, **others, "type": [kind, "null"]}
        case _:
            return schema
