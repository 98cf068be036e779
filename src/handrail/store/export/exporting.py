"""Taking a conversation out, and one in.

Owns what of it goes along: our own calls are told with what came of them, since they cannot be looked up elsewhere. It
does not know files, nor who asks.
"""

import anyio.to_thread

from handrail.store.actor import Actor
from handrail.store.export.shape import Export, ExportedMessage, ExportedPart, ExportedThread, parse
from handrail.store.part import CallStatus
from handrail.store.query import Records
from handrail.store.records import CallDetail, Status
from handrail.store.thread.clean import clean
from handrail.store.thread.record import MessagePart, MessageRecord
from handrail.store.threads import Threads
from handrail.store.value import Json

LONGEST_OUTPUT = 64 * 1024
"""Characters of what a call of ours gave back."""


async def export(threads: Threads, records: Records, thread: str) -> Export:
    """The conversation as it is now. Raises `LookupError` when there is none."""
    await threads.written()
    found = await records.thread(thread)
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
    """Take a conversation in, under ids of its own; its id. Raises `NotImportable`.

    It belongs to the workspace that is given here: a file must not say what agents may touch.
    """
    export = await anyio.to_thread.run_sync(parse, raw)
    thread = threads.open(
        workspace=workspace,
        title=clean(export.thread.title),
        agent=export.thread.agent,
        by=by,
        imported=True,
    )
    await threads.retell(thread, (_said(thread, message) for message in export.messages))
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
    """Whose calls it speaks of is not known here."""
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
    detail = await records.call(call) if isinstance(call, str) else None
    return part.data if detail is None else {**part.data, **_of_call(detail)}


def _of_call(detail: CallDetail) -> Json:
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
