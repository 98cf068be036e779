"""Routes of calls: list, table, get, cancel, complete; and the conversion of call records to JSON models."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter, ValidationError

from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.result_review import hide_message, hide_output, hide_result
from handrail.server.access import Person
from handrail.server.api._call_export import EXPORT_TYPES, write_calls
from handrail.server.api._device_limits import check_completion
from handrail.server.api.approval_models import Usual
from handrail.server.api.call_models import (
    CallCounts,
    CallDetail,
    CallTableView,
    CallView,
    CompleteBody,
    Completion,
    CredentialView,
    Forced,
)
from handrail.server.api.models import now_ms
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.store.actor import NOBODY, Actor
from handrail.store.call_filter import add_field
from handrail.store.call_table import CallTable, Sort
from handrail.store.calls import CallHistory, CallRecord, Status, TypicalDuration
from handrail.store.credentials import CredentialRecord
from handrail.store.query import Where
from handrail.store.search_query import Term
from handrail.store.values import Position, Preview
from handrail.terminal.terminals import Terminals

SearchText = Annotated[str, Query(max_length=5000)]
"""A query of the search language, short enough for a URL. The longest ones name selected calls by id."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/calls")
    async def calls(
        request: Request,
        status: Status | None = None,
        tool: str | None = None,
        agent: str | None = None,
        q: Annotated[str | None, Query(max_length=1000)] = None,
        before: Position | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
        caller: Annotated[str | None, Query(max_length=1000)] = None,
        unasked: bool = False,
    ) -> list[CallView]:
        where = Where()
        if status:
            add_field(where, Term("status", (status,)))
        where.add("calls.tool = ?", tool)
        where.add("calls.client = ?", agent)
        where.add("calls.caller_key = ?", caller)
        if unasked:
            add_field(where, Term("asked", ("nobody",)))
        found = await _table(context, request).find(q or "", where, before, limit)
        return _views(context, found, person_of(request))

    @router.get("/calls/{id}")
    async def call(id: str, request: Request) -> CallDetail:
        detail = _hide_output(await _get_call_history(context, id), person_of(request))
        view = call_detail(detail, context.gate.open.get(id), context.gate, context.terminals)
        shown = view.preview if person_of(request).approves else hide_result(view.preview)
        return view.model_copy(update={"preview": shown})

    @router.post("/calls/{id}/cancel")
    async def cancel(id: str, request: Request) -> Forced:
        open_call = context.gate.open.get(id)
        won = open_call is not None and person_actions.cancel(context.gate, open_call, actor_of(request))
        return await _forced_view(context, id, won, "Cancelled.", "Cancelled.")

    @router.post("/calls/{id}/complete")
    async def complete(id: str, body: CompleteBody, request: Request) -> Forced:
        open_call = context.gate.open.get(id)
        if open_call is not None and person_of(request).limited:
            await check_completion(context.gate, open_call, body)
        won = open_call is not None and await _complete(context, open_call, body, actor_of(request))
        return await _forced_view(context, id, won, "Completed.", NO_OUTPUT)

    return router


def table_routes(context: ServerContext) -> APIRouter:
    """Routes of the table of calls. They come before `/calls/{id}`, which would match their paths."""
    router = APIRouter()

    @router.get("/calls/table")
    async def table(
        request: Request,
        q: SearchText = "",
        sort: Sort = "time",
        ascending: bool = False,
        upto: Position | None = None,
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> CallTableView:
        page = await _table(context, request).page(q, sort, ascending, upto, offset, limit)
        return CallTableView(calls=_views(context, page.calls, person_of(request)), upto=page.upto)

    @router.get("/calls/counts")
    async def counts(request: Request, q: SearchText = "") -> CallCounts:
        found = await _table(context, request).counts(q)
        return CallCounts(total=found.total, statuses=found.statuses)

    @router.get("/calls/export", response_class=Response)
    async def export(
        request: Request,
        q: SearchText = "",
        sort: Sort = "time",
        ascending: bool = False,
        format: Literal["csv", "json"] = "csv",
    ) -> Response:
        first = await _table(context, request).page(q, sort, ascending, limit=1)
        rows = _exported(context, request, q, sort, ascending, first.upto)
        headers = {"content-disposition": f'attachment; filename="calls.{format}"'}
        return StreamingResponse(write_calls(rows, format), media_type=EXPORT_TYPES[format], headers=headers)

    return router


async def _exported(
    context: ServerContext, request: Request, q: str, sort: Sort, ascending: bool, upto: int
) -> AsyncIterator[list[CallView]]:
    """Pages of the table as it is now, until it ends."""
    offset = 0
    while True:
        page = await _table(context, request).page(q, sort, ascending, upto, offset, EXPORT_PAGE)
        yield _views(context, page.calls, person_of(request))
        offset += EXPORT_PAGE
        if len(page.calls) < EXPORT_PAGE:
            return


NO_OUTPUT = "Cancelled: there was no output to return."
EXPORT_PAGE = 1000
"""Calls read at once for an export: bounds its memory."""


def _table(context: ServerContext, request: Request) -> CallTable:
    """The table that this person may search: without `approves`, what calls read and printed is not searched."""
    return CallTable(context.records, context.index, texts=person_of(request).approves)


def _views(context: ServerContext, records: Iterable[CallRecord], person: Person) -> list[CallView]:
    return [
        call_view(hide_server_words(record, person), context.gate.open.get(record.id)) for record in records
    ]


async def _complete(context: ServerContext, call: Call, body: CompleteBody, by: Actor) -> bool:
    if body.content is None:
        return person_actions.complete(
            context.gate, call, by, stop=body.stop, text=body.text, digest=body.digest
        )
    return await person_actions.accept(context.gate, call, by, body.digest or "", body.content, body.comments)


def hide_server_words(record: CallRecord, person: Person) -> CallRecord:
    """The record, for those who only watch without the words of another server."""
    if person.approves:
        return record
    return replace(record, message=hide_message(record.settled_by, record.message))


def _hide_output(detail: CallHistory, person: Person) -> CallHistory:
    """The call, for those who only watch without what it read or printed, and without what its agent wrote unasked."""
    if person.approves:
        return detail
    return replace(detail, call=hide_server_words(detail.call, person), result=hide_output(detail.result))


async def _get_call_history(context: ServerContext, id: str) -> CallHistory:
    detail = await context.records.calls.get(id)
    if detail is None:
        raise HTTPException(404, f"There is no call {id}. `handrail calls` lists what there is.")
    return detail


async def _forced_view(context: ServerContext, id: str, won: bool, message: str, if_cancelled: str) -> Forced:
    """The response to a cancel or complete. If it came too late, the message has the call's status.

    Completing a call that waits for approval, or has no output, cancels it; the message then reports that.
    """
    if won:
        await context.journal.committed(context.journal.head)
    detail = await _get_call_history(context, id)
    view = call_view(detail.call, context.gate.open.get(id))
    if not won:
        message = f"It had ended before: {view.status}."
    elif view.status == "cancelled":
        message = if_cancelled
    return Forced(won=won, message=message, call=view)


def call_view(record: CallRecord, open_call: Call | None, usual: TypicalDuration | None = None) -> CallView:
    return CallView(
        id=record.id,
        seq=record.opened_seq,
        tool=record.tool,
        title=open_call.title if open_call else record.title,
        status=open_call.status if open_call else record.status,
        caller=record.caller,
        assurance=record.assurance,
        thread=record.caller.thread,
        started_at=record.opened_at,
        elapsed_ms=_elapsed_ms(record, open_call),
        asked_at=record.asked_at,
        reviewed_at=record.reviewed_at,
        answered_at=record.answered_at,
        answered_by=record.answered_by,
        edited=record.edited,
        ran_at=record.started_at,
        ended_at=record.settled_at,
        waited_ms=record.waited_ms,
        ran_ms=record.ran_ms,
        exit_code=record.exit_code,
        signal=record.signal,
        handed_back=record.handed_back_at is not None,
        client_gone=record.client_gone_at is not None,
        stopped=record.stopped_at is not None,
        allowed_by=record.allowed_by,
        by=record.settled_by,
        message=record.message or "",
        terminal_id=record.terminal,
        approval_id=record.approval,
        usual=usual_view(usual),
    )


def call_detail(detail: CallHistory, open_call: Call | None, gate: Gate, terminals: Terminals) -> CallDetail:
    terminal = terminals.get(detail.call.terminal) if detail.call.terminal else None
    pending = open_call.approval.asked if open_call and open_call.approval else None
    would_run = (open_call and open_call.plan) or pending or detail
    answer = open_call.approval.answered if open_call and open_call.approval else None
    edited = answer.input if answer else None
    return CallDetail(
        **call_view(detail.call, open_call).__dict__,
        input=edited or (open_call.input if open_call else detail.input or {}),
        asked=open_call.input if open_call and edited else detail.asked,
        claims=would_run.claims,
        preview=would_run.preview or _unasked_preview(detail),
        files=detail.files,
        result=detail.result,
        receipt=detail.receipt,
        completion=_completion_view(gate, open_call) if open_call else None,
        terminal_running=terminal is not None and terminal.exit is None,
    )


_PREVIEW: TypeAdapter[Preview] = TypeAdapter(Preview)


def _unasked_preview(detail: CallHistory) -> Preview | None:
    """What an agent did unasked. It had no approval, so its result holds the preview."""
    if detail.call.allowed_by != str(NOBODY) or detail.result is None:
        return None
    try:
        return _PREVIEW.validate_python(detail.result.data.get("preview"))
    except ValidationError:
        return None


def usual_view(usual: TypicalDuration | None) -> Usual | None:
    return usual and Usual(**usual._asdict())


def credential_view(record: CredentialRecord) -> CredentialView:
    return CredentialView(
        id=record.id, name=record.name, workspace=record.workspace, issued_at=record.issued_at
    )


def _elapsed_ms(record: CallRecord, open_call: Call | None) -> int:
    if open_call is not None and not open_call.client_gone:
        return open_call.elapsed_ms
    return max(0, (record.settled_at or now_ms()) - record.opened_at)


def _completion_view(gate: Gate, call: Call) -> Completion:
    completion = person_actions.completion(gate, call)
    return Completion(does=completion.does, tells=completion.tells, runs_on=completion.runs_on)
