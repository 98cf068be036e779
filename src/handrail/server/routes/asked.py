"""The approvals that a path or a list names, each with what stands beside it."""

from collections.abc import Sequence

from fastapi import HTTPException

from handrail.errors import Conflict
from handrail.gate.approval import Approval
from handrail.gate.call import Call
from handrail.gate.risk import weigh
from handrail.gate.rules.suggestions import Suggested, suggest
from handrail.server.approval_views import Beside, approval_view, closed, held, part_risks
from handrail.server.approval_wire import ApprovalView
from handrail.server.rooms import Rooms
from handrail.server.rule_views import suggestion_view
from handrail.server.views import usual_view
from handrail.store.records import ApprovalRecord
from handrail.store.value import Caller

MOST_BESIDE = 10
"""Questions of a list that are given suggestions, usual times and the risk of each part: those that a person looks at
first. Whoever looks at another one gets them with it."""


async def asked(rooms: Rooms, id: str) -> ApprovalRecord:
    record = await rooms.records.approval(id)
    if record is None:
        raise HTTPException(404, f"There is no approval {id}. `handrail approvals` lists the open ones.")
    return record


async def still_open(rooms: Rooms, id: str) -> tuple[Call, Approval]:
    """A question as the gate holds it. Raises Conflict when it was closed, and says how."""
    record = await asked(rooms, id)
    call, approval = rooms.gate.open.get(record.call), held(rooms.gate, record)
    if call is None or approval is None:
        raise Conflict(closed(await asked(rooms, id)))
    if not approval.open:
        raise Conflict(approval.closed())
    return call, approval


async def view(rooms: Rooms, id: str) -> ApprovalView:
    """One question, with all that stands beside it."""
    record = await asked(rooms, id)
    detail = None if record.call in rooms.gate.open else await rooms.records.call(record.call)
    beside = await _beside(rooms, record, _trusts(rooms, record.caller))
    return approval_view(record, rooms.gate, beside, detail and detail.input)


async def views(rooms: Rooms, records: Sequence[ApprovalRecord]) -> list[ApprovalView]:
    """Many; the first have all that stands beside them."""
    callers = {record.caller.workspace: record.caller for record in records}
    trusted = {workspace: _trusts(rooms, caller) for workspace, caller in callers.items()}
    found: list[ApprovalView] = []
    for place, record in enumerate(records):
        trusts = trusted[record.caller.workspace]
        beside = await _beside(rooms, record, trusts) if place < MOST_BESIDE else Beside(trusted=trusts)
        found.append(approval_view(record, rooms.gate, beside))
    return found


async def open_views(rooms: Rooms) -> list[ApprovalView]:
    """Those that wait for a person. What the gate holds no more is closed, whatever the record says yet."""
    found = await rooms.records.open_approvals()
    return await views(rooms, [record for record in found if held(rooms.gate, record)])


async def _beside(rooms: Rooms, record: ApprovalRecord, trusted: bool) -> Beside:
    """Of a closed question nothing is suggested any more."""
    approval = held(rooms.gate, record)
    if approval is None or not approval.open:
        return Beside(trusted=trusted)
    usual = await rooms.records.usual(record.tool, record.title)
    suggestions = tuple(suggestion_view(each) for each in _suggested(rooms, approval, record))
    risks = part_risks(weigh(approval.asked.claims))
    return Beside(trusted=trusted, risks=risks, suggestions=suggestions, usual=usual_view(usual))


def _suggested(rooms: Rooms, approval: Approval, record: ApprovalRecord) -> list[Suggested]:
    policy = rooms.gate.rules.policy(record.caller)
    return suggest(record.tool, approval.asked.claims, record.caller, policy)


def _trusts(rooms: Rooms, caller: Caller) -> bool:
    return rooms.gate.rules.policy(caller).here.trusted
