"""Domain into wire: how an operation and what it was busy with look to people's programs. Pure translations."""

from handrail.server.wire import ActivityView, OperationDetail
from handrail.store.thread import record
from handrail.store.thread.record import ActivityRecord


def operation_detail(found: record.OperationDetail) -> OperationDetail:
    operation = found.operation
    return OperationDetail(
        operation=operation.id,
        thread=operation.thread,
        agent=operation.client,
        opened_at=operation.opened_at,
        ended_at=operation.ended_at,
        stop=operation.stop,
        error=operation.error,
        cancelled_by=operation.cancelled_by,
        cancelled_calls=found.cancelled_calls,
        cancelled_activities=found.cancelled_activities,
        activities=[_activity_view(each) for each in found.activities],
    )


def _activity_view(activity: ActivityRecord) -> ActivityView:
    # Made without checks: there may be thousands, and they were checked when they were made.
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
