"""Routes of the clients' own transcripts: list, read and export them. Nothing is written."""

import re
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import APIRouter, Query, Response
from pydantic import JsonValue

from handrail.clients.transcripts.transcript import (
    ClientName,
    Transcript,
    TranscriptCall,
    TranscriptMessage,
    TranscriptPart,
    TranscriptSummary,
)
from handrail.server.api.models import Wire, as_json
from handrail.server.api.thread_models import MessageView
from handrail.server.client_sessions import CLIENT_TITLES
from handrail.server.context import ServerContext
from handrail.store.export import Export, ExportedMessage, ExportedPart, ExportedThread
from handrail.store.export_markdown import as_markdown
from handrail.store.threads.message import clean, clean_json
from handrail.store.threads.parts import CallKind
from handrail.store.threads.thread_records import MessagePart
from handrail.store.values import Json

_MIME_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}


class TranscriptView(Wire):
    """A conversation in a client's own files."""

    client: ClientName
    client_title: str
    session: str
    """The client's own id of the conversation."""
    title: str
    """The first prompt, or the client's own title."""
    folder: str
    updated_at: int
    size: int | None
    """Bytes of its file; None if one file holds all conversations of the client."""


class TranscriptDetail(TranscriptView):
    """A conversation with its newest messages, in chronological order."""

    said: list[MessageView]
    skipped: int
    """Lines of the file that this Handrail does not understand."""
    shortened: bool
    """Older messages were left out, because there are too many."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/transcripts")
    async def transcripts(
        folder: Annotated[str | None, Query(max_length=4096)] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[TranscriptView]:
        found = await anyio.to_thread.run_sync(context.transcripts.find, folder, limit)
        return [_build_view(summary) for summary in found]

    @router.get("/transcripts/{client}/{session}", response_model=TranscriptDetail)
    async def transcript(client: str, session: str) -> Response:
        detail = await anyio.to_thread.run_sync(_load_detail, context, client, session)
        return as_json(detail, TranscriptDetail)

    @router.get("/transcripts/{client}/{session}/export", response_class=Response)
    async def export_transcript(client: str, session: str, format: Literal["md", "json"] = "md") -> Response:
        detail = await anyio.to_thread.run_sync(_load_detail, context, client, session)
        content = await anyio.to_thread.run_sync(_serialize_export, detail, format)
        name = re.sub(r"[^A-Za-z0-9]+", "-", detail.title).strip("-")[:40] or "transcript"
        headers = {"content-disposition": f'attachment; filename="{name}-{detail.session}.{format}"'}
        return Response(content, media_type=_MIME_TYPES[format], headers=headers)

    return router


def _load_detail(context: ServerContext, client: str, session: str) -> TranscriptDetail:
    summary, transcript = context.transcripts.read(client, session)
    return TranscriptDetail(
        **_build_view(summary).__dict__,
        said=_build_messages(summary, transcript),
        skipped=transcript.skipped,
        shortened=transcript.shortened,
    )


def _serialize_export(detail: TranscriptDetail, format: Literal["md", "json"]) -> str:
    thread = ExportedThread(
        title=detail.title,
        agent=detail.client_title,
        workspace=detail.folder or None,
        created_at=detail.said[0].opened_at if detail.said else detail.updated_at,
        updated_at=detail.updated_at,
    )
    export = Export(thread=thread, messages=tuple(map(_exported_message, detail.said)))
    return as_markdown(export) if format == "md" else export.model_dump_json(indent=2)


def _exported_message(message: MessageView) -> ExportedMessage:
    return ExportedMessage.model_construct(
        role=message.role,
        agent=message.agent,
        opened_at=message.opened_at,
        ended_at=message.ended_at,
        stop=message.stop,
        parts=tuple(
            ExportedPart.model_construct(kind=part.kind, text=part.text, data=part.data)
            for part in message.parts
        ),
    )


def _build_view(summary: TranscriptSummary) -> TranscriptView:
    return TranscriptView(
        client=summary.client,
        client_title=CLIENT_TITLES[summary.client],
        session=summary.session,
        title=clean(summary.title),
        folder=clean(summary.folder),
        updated_at=summary.updated_at,
        size=summary.size,
    )


def _build_messages(summary: TranscriptSummary, transcript: Transcript) -> list[MessageView]:
    return [
        _build_message(n, message, summary) for n, message in enumerate(transcript.messages) if message.parts
    ]


def _build_message(n: int, message: TranscriptMessage, summary: TranscriptSummary) -> MessageView:
    at = message.at or summary.updated_at
    return MessageView(
        id=f"{summary.session}-{n}",
        n=n,
        role=message.role,
        agent=CLIENT_TITLES[summary.client],
        operation=None,
        queued=False,
        opened_at=at,
        ended_at=at,
        stop="end_turn",
        parts=tuple(_build_part(place, part) for place, part in enumerate(message.parts)),
    )


def _build_part(n: int, part: TranscriptPart) -> MessagePart:
    if part.call is None:
        return MessagePart(n=n, kind=part.kind, text=clean(part.text), data={})
    return MessagePart(n=n, kind="call", text="", data=clean_json(_build_call(part.call)))


def _build_call(call: TranscriptCall) -> Json:
    """The data of a call part: the fields of `CallData`."""
    ended = "failed" if call.failed else "completed"
    diff = _build_diff(call.input)
    content: list[JsonValue] = [diff] if diff else []
    return {
        "id": call.id,
        "title": _build_title(call),
        "sort": _find_sort(call.tool),
        "status": ended if call.ended else "pending",
        "call": None,
        "tool": call.tool,
        "locations": [],
        "content": content,
        "input": None if diff else call.input,
        "output": call.output or None,
    }


_SUBJECTS = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
)
"""Fields of an input that tell what a call is about, the most telling first."""


def _build_title(call: TranscriptCall) -> str:
    subject = _find_subject(call.input)
    return f"{call.tool}: {subject}" if subject else call.tool


def _find_subject(input: JsonValue) -> str:
    """What a call is about, in one line."""
    if not isinstance(input, dict):
        return ""
    for name in _SUBJECTS:
        value = input.get(name)
        words = value if isinstance(value, list) else [value]
        if value and all(isinstance(word, str) for word in words):
            return " ".join(" ".join(map(str, words)).split())[:200]
    return ""


_SORTS: tuple[tuple[CallKind, tuple[str, ...]], ...] = (
    ("execute", ("bash", "shell", "exec", "command", "terminal")),
    ("edit", ("edit", "write", "patch", "replace")),
    ("search", ("grep", "glob", "search", "list", "ls")),
    ("fetch", ("fetch", "web")),
    ("read", ("read", "view")),
    ("think", ("todo", "plan", "task", "agent", "memory")),
)
"""By sort: words in the clients' names of tools."""


def _find_sort(tool: str) -> CallKind:
    name = tool.lower()
    for sort, words in _SORTS:
        if any(word in name for word in words):
            return sort
    return "other"


def _build_diff(input: JsonValue) -> Json | None:
    """The change that an edit's input describes, if it does so by old and new text."""
    if not isinstance(input, dict):
        return None
    path = input.get("file_path") or input.get("filePath")
    old = input.get("old_string", input.get("oldString"))
    new = input.get("new_string", input.get("newString"))
    if isinstance(path, str) and isinstance(old, str) and isinstance(new, str):
        return {"kind": "diff", "path": path, "old": old, "new": new}
    return None
