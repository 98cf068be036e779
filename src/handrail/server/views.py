"""Domain into wire: how calls look to people's programs (approvals: approval_views.py, rules: rule_views.py).

Pure translations. Open calls come from the gate, which knows more than the disk; settled ones from the records.
"""

import time

from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.server.approval_wire import Usual
from handrail.server.wire import (
    CallDetail,
    CallView,
    Completion,
    CredentialView,
)
from handrail.store import records
from handrail.terminal.terminals import Terminals


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def call_view(
    record: records.CallRecord, open_call: Call | None, usual: records.Usual | None = None
) -> CallView:
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
        elapsed_ms=_elapsed(record, open_call),
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


def call_detail(
    detail: records.CallDetail, open_call: Call | None, gate: Gate, terminals: Terminals
) -> CallDetail:
    terminal = terminals.get(detail.call.terminal) if detail.call.terminal else None
    asked = open_call.approval.asked if open_call and open_call.approval else None
    would_run = (open_call and open_call.plan) or asked or detail
    answer = open_call.approval.answered if open_call and open_call.approval else None
    edited = answer.input if answer else None
    return CallDetail(
        **call_view(detail.call, open_call).__dict__,
        input=edited or (open_call.input if open_call else detail.input or {}),
        asked=open_call.input if open_call and edited else detail.asked,
        claims=would_run.claims,
        preview=would_run.preview,
        files=detail.files,
        result=detail.result,
        receipt=detail.receipt,
        completion=_completion(gate, open_call) if open_call else None,
        terminal_running=terminal is not None and terminal.exit is None,
    )


def usual_view(usual: records.Usual | None) -> Usual | None:
    return usual and Usual(**usual._asdict())


def credential_view(record: records.CredentialRecord) -> CredentialView:
    return CredentialView(
        id=record.id, name=record.name, workspace=record.workspace, issued_at=record.issued_at
    )


def _elapsed(record: records.CallRecord, open_call: Call | None) -> int:
    if open_call is not None and not open_call.client_gone:
        return open_call.elapsed_ms
    return max(0, (record.settled_at or now_ms()) - record.opened_at)


def _completion(gate: Gate, call: Call) -> Completion:
    found = person_actions.completion(gate, call)
    return Completion(does=found.does, tells=found.tells, runs_on=found.runs_on)
