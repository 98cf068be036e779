"""The routes of `/api`: people's programs, and the page among them.

Owns each route's few lines and the sentences of its refusals. It does not judge who comes in (guard.py), keeps
no state, and is the one place where exceptions become HTTP answers.
"""

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from handrail import __version__
from handrail.errors import Conflict, Unwritable
from handrail.gate import verbs
from handrail.gate.approval import Answer
from handrail.server import views
from handrail.server.access import Person
from handrail.server.rooms import Rooms
from handrail.server.wire import (
    AnswerBody,
    ApprovalView,
    CallDetail,
    CallView,
    CompleteBody,
    Credential,
    CredentialBody,
    CredentialView,
    Forced,
    Health,
    LiveEntries,
    OperationView,
    Problem,
    SignedIn,
    SignInBody,
    State,
    TerminalView,
)
from handrail.store import records as kept
from handrail.store.event import CredentialRevoked
from handrail.store.records import Status

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 422, 503)
}
MOST_OPEN = 2000
"""Open calls in a snapshot; more than anybody can have let pile up."""
RECENT = 50
"""Settled calls in a snapshot: what a person can take in at a glance."""


def application(rooms: Rooms) -> FastAPI:
    """The routes as an ASGI application, without its guard."""
    app = FastAPI(
        title="Handrail",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    app.include_router(routes(rooms), prefix="/api")
    app.add_exception_handler(Unwritable, _unwritable)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()
    _watching(router, rooms)
    _calls(router, rooms)
    _approvals(router, rooms)
    _terminals(router, rooms)
    _access(router, rooms)
    return router


def _watching(router: APIRouter, rooms: Rooms) -> None:
    @router.get("/state")
    async def state() -> State:
        seq = rooms.journal.durable
        open_calls = await _open_calls(rooms)
        newest = await rooms.records.calls(limit=RECENT + len(open_calls))
        asked = await rooms.records.approvals(open_only=True)
        return State(
            seq=seq,
            now=views.now_ms(),
            version=__version__,
            started=rooms.started,
            auto_approve=rooms.auto_approve,
            command_line=rooms.command_line,
            calls=open_calls,
            recent=[views.call_view(call, None) for call in newest if call.id not in rooms.gate.open],
            approvals=[views.approval_view(record, rooms.gate) for record in asked],
        )

    @router.get("/events")
    async def events(after: Annotated[int, Query(ge=0)] = 0) -> LiveEntries:
        return LiveEntries(now=views.now_ms(), entries=await rooms.journal.since(after))

    @router.get("/health")
    async def health(request: Request) -> Health:
        if request.scope.get("handrail.person") is None:
            return Health(ok=True, version=__version__)
        return await rooms.health()

    @router.post("/down", status_code=202)
    async def down(keep_terminals: bool = False) -> dict[str, bool]:
        rooms.stop(not keep_terminals)
        return {"ok": True}


def _calls(router: APIRouter, rooms: Rooms) -> None:
    @router.get("/calls")
    async def calls(
        status: Status | None = None,
        tool: str | None = None,
        agent: str | None = None,
        q: Annotated[str | None, Query(max_length=1000)] = None,
        before: int | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> list[CallView]:
        found = await rooms.records.calls(status, tool, agent, q, before, limit)
        return [views.call_view(record, rooms.gate.open.get(record.id)) for record in found]

    @router.get("/calls/{id}")
    async def call(id: str) -> CallDetail:
        detail = await _detail(rooms, id)
        return views.call_detail(detail, rooms.gate.open.get(id), rooms.gate, rooms.terminals)

    @router.post("/calls/{id}/cancel")
    async def cancel(id: str, request: Request) -> Forced:
        open_call = rooms.gate.open.get(id)
        won = open_call is not None and verbs.cancel(rooms.gate, open_call, _by(request))
        return await _forced(rooms, id, won, "Cancelled.")

    @router.post("/calls/{id}/complete")
    async def complete(id: str, body: CompleteBody, request: Request) -> Forced:
        open_call = rooms.gate.open.get(id)
        won = open_call is not None and verbs.complete(
            rooms.gate, open_call, _by(request), stop=body.stop, text=body.text, digest=body.digest
        )
        return await _forced(rooms, id, won, "Completed.")

    @router.get("/operations")
    async def operations() -> list[OperationView]:
        return [
            OperationView(
                id=operation.id,
                caller=operation.caller,
                calls=tuple(c.id for c in rooms.gate.open.values() if c.caller.operation == operation.id),
            )
            for operation in rooms.gate.operations.values()
        ]

    @router.post("/operations/{id}/cancel")
    async def cancel_operation(id: str, request: Request) -> dict[str, bool]:
        operation = rooms.gate.operations.get(id)
        if operation is None:
            raise HTTPException(404, f"There is no open operation {id}; it has ended, or never was.")
        return {"won": operation.cancel(_by(request))}


def _approvals(router: APIRouter, rooms: Rooms) -> None:
    @router.get("/approvals")
    async def approvals(open: bool = False) -> list[ApprovalView]:
        found = await rooms.records.approvals(open_only=open)
        return [views.approval_view(record, rooms.gate) for record in found]

    @router.get("/approvals/{id}")
    async def approval(id: str) -> ApprovalView:
        record = await _asked(rooms, id)
        detail = await rooms.records.call(record.call)
        return views.approval_view(record, rooms.gate, detail.input if detail else None)

    @router.post("/approvals/{id}/answer")
    async def answer(id: str, body: AnswerBody, request: Request) -> ApprovalView:
        record = await _asked(rooms, id)
        open_call = rooms.gate.open.get(record.call)
        if open_call is None or open_call.approval is None or open_call.approval.id != id:
            raise Conflict(_closed(await _asked(rooms, id)))
        given = Answer(kind=body.answer, by=_by(request), reason=body.reason)
        await rooms.journal.committed(verbs.answer(open_call.approval, given, body.digest))
        return views.approval_view(await _asked(rooms, id), rooms.gate, open_call.input)


def _terminals(router: APIRouter, rooms: Rooms) -> None:
    @router.get("/terminals")
    async def terminals(running: bool = False) -> list[TerminalView]:
        found = await rooms.records.terminals(running_only=running)
        return [views.terminal_view(record, rooms.terminals.get(record.id)) for record in found]

    @router.post("/terminals/{id}/close")
    async def close(id: str) -> TerminalView:
        record = await rooms.records.terminal(id)
        if record is None:
            raise HTTPException(404, f"There is no terminal {id}.")
        live = rooms.terminals.get(id)
        if live is not None and live.exit is None:
            await live.stop()
        return views.terminal_view(record, live)


def _access(router: APIRouter, rooms: Rooms) -> None:
    @router.post("/sign-in")
    async def sign_in(body: SignInBody) -> SignedIn:
        match rooms.access.redeem(body.code):
            case "unknown":
                raise HTTPException(401, "This link is not valid. Run `handrail open` for a fresh one.")
            case "expired":
                raise HTTPException(
                    401, "This link is older than a minute. Run `handrail open` for a fresh one."
                )
            case "used":
                raise HTTPException(
                    401,
                    "This link was used before, so the sign-in it made is revoked: somebody else may have seen it. "
                    "Run `handrail open` for a fresh one.",
                )
            case bearer:
                return SignedIn(bearer=bearer)

    @router.post("/code")
    async def code() -> dict[str, str]:
        if rooms.access.sealed is not None:
            raise HTTPException(403, rooms.access.sealed)
        return {"url": f"{rooms.url}/#code={rooms.access.issue_code()}"}

    @router.get("/credentials")
    async def credentials() -> list[CredentialView]:
        found = await rooms.records.credentials()
        return [views.credential_view(record) for record in found if record.revoked_at is None]

    @router.post("/credentials")
    async def issue(body: CredentialBody) -> Credential:
        client, bearer, seq = rooms.access.issue_client(body.name, body.workspace)
        await rooms.journal.committed(seq)
        view = CredentialView(
            id=client.credential, name=client.name, workspace=client.workspace, issued_at=views.now_ms()
        )
        return Credential(**view.__dict__, bearer=bearer, url=f"{rooms.url}/mcp")

    @router.delete("/credentials/{id}", status_code=204)
    async def revoke(id: str, request: Request) -> Response:
        rooms.access.forget_client(id)
        await rooms.journal.committed(rooms.journal.append(CredentialRevoked(credential=id, by=_by(request))))
        return Response(status_code=204)


def _by(request: Request) -> str:
    person: Person = request.scope["handrail.person"]
    return f"a person on the {person.place}"


async def _open_calls(rooms: Rooms) -> list[CallView]:
    """Calls without an outcome, oldest first, as the gate knows them."""
    waiting = await rooms.records.calls(status="waiting", limit=MOST_OPEN)
    running = await rooms.records.calls(status="running", limit=MOST_OPEN)
    found = sorted((*waiting, *running), key=lambda record: record.opened_seq)
    return [
        views.call_view(record, rooms.gate.open[record.id])
        for record in found
        if record.id in rooms.gate.open
    ]


async def _detail(rooms: Rooms, id: str) -> kept.CallDetail:
    detail = await rooms.records.call(id)
    if detail is None:
        raise HTTPException(404, f"There is no call {id}. `handrail calls` lists what there is.")
    return detail


async def _asked(rooms: Rooms, id: str) -> kept.ApprovalRecord:
    record = await rooms.records.approval(id)
    if record is None:
        raise HTTPException(404, f"There is no approval {id}. `handrail approvals` lists the open ones.")
    return record


async def _forced(rooms: Rooms, id: str, won: bool, done: str) -> Forced:
    """The call after a verb; a verb that came too late changed nothing and says how it ended."""
    if won:
        await rooms.journal.committed(rooms.journal.head)
    detail = await _detail(rooms, id)
    view = views.call_view(detail.call, rooms.gate.open.get(id))
    return Forced(won=won, message=done if won else f"It had ended before: {view.status}.", call=view)


def _closed(record: kept.ApprovalRecord) -> str:
    if record.answered_at is None:
        return f"Already withdrawn: {record.withdrawn_why or 'its call has ended'}."
    word = "allowed" if record.answer == "allow" else "denied"
    seconds = (views.now_ms() - record.answered_at) // 1000
    return f"Already {word} by {record.answered_by}, {seconds} s ago."


async def _unwritable(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 503)


async def _conflict(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 409)


async def _invalid(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    told = "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'].lower()}"
        for error in problem.errors()[:5]
    )
    return JSONResponse(
        {"detail": f"The request does not fit: {told}. /api/openapi.json says what does."}, 422
    )
