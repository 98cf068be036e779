"""Routes of operations: list, get one with its activities, cancel it or one activity."""

from fastapi import APIRouter, HTTPException, Request, Response

from handrail.server.api import threads
from handrail.server.api.call_models import ActivityView, OperationDetail, OperationView
from handrail.server.api.models import as_json
from handrail.server.context import ServerContext, actor_of
from handrail.store.operations import ActivityRecord, OperationHistory


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/operations")
    async def operations() -> list[OperationView]:
        return [
            OperationView(
                id=operation.id,
                caller=operation.caller,
                calls=tuple(c.id for c in context.gate.open.values() if c.caller.operation == operation.id),
            )
            for operation in context.gate.operations.values()
        ]

    @router.post("/operations/{id}/cancel")
    async def cancel_operation(id: str, request: Request) -> dict[str, bool]:
        operation = context.gate.operations.get(id)
        if operation is None:
            raise HTTPException(404, f"There is no open operation {id}; it has ended, or never was.")
        return {"won": operation.cancel(actor_of(request))}

    @router.get("/operations/{id}", response_model=OperationDetail)
    async def operation(id: str) -> Response:
        await threads.wait_for_writes(context)
        history = await context.records.operations.history(id)
        if history is None:
            raise HTTPException(404, f"There is no operation {id}.")
        return as_json(operation_detail(history), OperationDetail)

    @router.post("/operations/{id}/activities/{activity}/cancel")
    async def cancel_activity(id: str, activity: str, request: Request) -> dict[str, bool]:
        if await context.records.operations.get(id) is None:
            raise HTTPException(404, f"There is no operation {id}.")
        await context.prompts.cancel_activity(id, activity, by=actor_of(request))
        return {"won": True}

    return router


def operation_detail(history: OperationHistory) -> OperationDetail:
    operation = history.operation
    return OperationDetail(
        operation=operation.id,
        thread=operation.thread,
        agent=operation.client,
        opened_at=operation.opened_at,
        ended_at=operation.ended_at,
        stop=operation.stop,
        error=operation.error,
        cancelled_by=operation.cancelled_by,
        cancelled_calls=history.cancelled_calls,
        cancelled_activities=history.cancelled_activities,
        activities=[_activity_view(each) for each in history.activities],
    )


def _activity_view(activity: ActivityRecord) -> ActivityView:
    # Skip validation: there may be thousands, and the records are already valid.
    return ActivityView.model_construct(
        id=activity.id,
        parent=activity.parent,
        sort=activity.sort,
        title=activity.title,
        tool_call=activity.tool_call,
        call=activity.call,
        started_at=activity.started_at,
        ended_at=activity.ended_at,
        how=activity.how,
        by=activity.by,
        detail=activity.detail,
    )
