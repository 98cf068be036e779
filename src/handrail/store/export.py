"""Thread export and import: the JSON format, version 1, and the conversion from and to stored threads."""

from typing import Annotated, Literal, cast

import anyio.to_thread
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from handrail.store.actor import Actor
from handrail.store.calls import CallHistory, Status
from handrail.store.records import Records
from handrail.store.threads.message import clean
from handrail.store.threads.parts import (
    CallData,
    CallStatus,
    ErrorData,
    FileData,
    ImageData,
    PlanData,
    RawData,
)
from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Json, PartKind, Role, Stop

VERSION = 1
_SHOWN = 3
"""Validation problems listed in one error message."""

Time = Annotated[int, Field(ge=0, le=2**53)]
Name = Annotated[str, Field(max_length=200)]
"""The name of an agent."""


class NotImportable(ValueError):
    """The file is not a valid export of a supported version."""


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ExportedPart(_Shape):
    """A part of a message. `data` has the fields of its kind (see `threads.parts`)."""

    kind: PartKind
    text: str = ""
    data: Annotated[Json, Field(validate_default=True)] = {}

    @field_validator("data")
    @classmethod
    def _as_its_kind_has_it(cls, data: Json, known: ValidationInfo) -> Json:
        kind: PartKind | None = known.data.get("kind")
        if kind is None or kind not in _DATA:
            return data
        try:
            return cast("Json", _DATA[kind].validate_python({**_ABSENT.get(kind, {}), **data}))
        except ValidationError as error:
            one = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, one['loc']))}: {one['msg']}") from None


class ExportedMessage(_Shape):
    """A message."""

    role: Role
    agent: Name = ""
    opened_at: Time
    ended_at: Time | None = None
    stop: Stop | None = None
    parts: Annotated[tuple[ExportedPart, ...], Field(max_length=10_000)]


class ExportedThread(_Shape):
    """The thread's own fields. `workspace` is informative: an import ignores it."""

    title: Annotated[str, Field(max_length=200)]
    agent: Name
    workspace: str | None = None
    created_at: Time
    updated_at: Time


class Export(_Shape):
    """A thread in a file."""

    handrail: Literal[1] = 1
    thread: ExportedThread
    messages: Annotated[tuple[ExportedMessage, ...], Field(max_length=100_000)]


def parse(raw: str | bytes) -> Export:
    """Parse an export file. Raises `NotImportable`."""
    try:
        return Export.model_validate_json(raw)
    except ValidationError as error:
        raise NotImportable(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    found = error.errors(include_url=False)
    for one in found:
        if one["type"] == "json_invalid":
            return f"This is not JSON: {one['msg']}."
        if one["loc"] == ("handrail",) and one["type"] == "literal_error":
            return f"This is an export of version {one['input']}, and this Handrail reads version {VERSION} only."
    places = "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in found[:_SHOWN]
    )
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"This is not a conversation as Handrail exports it. {places}{more}."


_DATA: dict[PartKind, TypeAdapter[object]] = {
    "call": TypeAdapter(CallData),
    "plan": TypeAdapter(PlanData),
    "image": TypeAdapter(ImageData),
    "file": TypeAdapter(FileData),
    "error": TypeAdapter(ErrorData),
    "raw": TypeAdapter(RawData),
}
_ABSENT: dict[PartKind, Json] = {
    "call": {
        "id": "",
        "sort": "other",
        "call": None,
        "tool": "",
        "locations": [],
        "content": [],
        "input": None,
        "output": None,
    },
    "error": {"said": [], "logins": []},
}
"""Defaults for fields that an export may omit."""

LONGEST_OUTPUT = 64 * 1024
"""Bounds the size of an export: characters kept of one call's output."""


async def export(threads: Threads, records: Records, thread: str) -> Export:
    """Export the current state of a thread. Raises `LookupError` for an unknown id."""
    await threads.written()
    found = await records.threads.get(thread)
    if found is None:
        raise LookupError(f"There is no thread {thread}.")
    messages = [await _message(message, records) for message in await threads.transcript(thread)]
    return Export(
        thread=ExportedThread(
            title=found.title[:200],
            agent=found.agent,
            workspace=found.workspace,
            created_at=found.created_at,
            updated_at=found.updated_at,
        ),
        messages=tuple(messages),
    )


async def import_thread(threads: Threads, raw: str | bytes, by: Actor, workspace: str | None = None) -> str:
    """Import a thread with new ids; return its id. Raises `NotImportable`.

    The workspace comes from the caller: a file must not choose what agents may access.
    """
    export = await anyio.to_thread.run_sync(parse, raw)
    thread = threads.open(
        workspace=workspace,
        title=clean(export.thread.title),
        agent=export.thread.agent,
        by=by,
        imported=True,
    )
    await threads.append_copies(thread, (_said(thread, message) for message in export.messages))
    return thread


def _said(thread: str, message: ExportedMessage) -> MessageRecord:
    parts = enumerate(message.parts)
    return MessageRecord(
        id="",
        thread=thread,
        n=0,
        role=message.role,
        agent=message.agent,
        operation=None,
        queued=False,
        opened_at=message.opened_at,
        ended_at=message.ended_at,
        stop=message.stop,
        parts=tuple(
            MessagePart(n=n, kind=part.kind, text=part.text, data=_without_ours(part)) for n, part in parts
        ),
    )


def _without_ours(part: ExportedPart) -> Json:
    """Drop the reference to a call: its id belongs to the exporting journal."""
    return {**part.data, "call": None} if part.kind == "call" else part.data


async def _message(message: MessageRecord, records: Records) -> ExportedMessage:
    parts = [
        ExportedPart.model_construct(kind=part.kind, text=part.text, data=await _data(part, records))
        for part in message.parts
    ]
    return ExportedMessage.model_construct(
        role=message.role,
        agent=message.agent,
        opened_at=message.opened_at,
        ended_at=message.ended_at,
        stop=message.stop,
        parts=tuple(parts),
    )


async def _data(part: MessagePart, records: Records) -> Json:
    call = part.data.get("call") if part.kind == "call" else None
    detail = await records.calls.get(call) if isinstance(call, str) else None
    return part.data if detail is None else {**part.data, **_of_call(detail)}


def _of_call(detail: CallHistory) -> Json:
    output = detail.result.text[:LONGEST_OUTPUT] if detail.result else detail.call.message
    return {
        "title": detail.call.title,
        "tool": detail.call.tool,
        "status": _STATUS[detail.call.status],
        "input": detail.input,
        "output": output,
    }


_STATUS: dict[Status, CallStatus] = {
    "waiting": "pending",
    "running": "in_progress",
    "done": "completed",
    "completed": "completed",
    "failed": "failed",
    "interrupted": "failed",
    "denied": "cancelled",
    "cancelled": "cancelled",
}
