"""Routes of approvals: list, get, answer, preview an edit, review a proposed file.

Also the parts that the rule routes share: build a rule from a request body, and test rules against past calls.
"""

from collections.abc import Iterable, Sequence

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Request, Response

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval, format_age
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.person_actions import AllowResult, CurrentProposal, EditPreview
from handrail.gate.result_review import HAS_RUN, hide_result, is_review
from handrail.gate.risk import CallAssessment, assess_call
from handrail.gate.rules.policy import Policy
from handrail.gate.rules.suggestions import (
    RuleStatistics,
    SuggestedRule,
    measure_rule,
    suggest_from_history,
    suggest_rules,
)
from handrail.lazy_dataclass import dataclass
from handrail.server.access import Person
from handrail.server.api._device_limits import check_answer
from handrail.server.api.approval_models import (
    AllowedLow,
    AllowLowBody,
    AnswerBody,
    ApprovalStatus,
    ApprovalView,
    EditBody,
    EditView,
    PartRisk,
    ProposalView,
    Usual,
)
from handrail.server.api.calls import usual_view
from handrail.server.api.models import as_json, now_ms
from handrail.server.api.rule_models import RuleBody, Suggestion, suggestion_view
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.store.approvals import ApprovalRecord
from handrail.store.calls import CallHistory
from handrail.store.values import Caller, Claim, Json, ResultPreview, Rule


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/approvals", response_model=list[ApprovalView])
    async def approvals(request: Request, open: bool = False) -> Response:
        if open:
            views = await load_open_views(context)
        else:
            views = await load_views(context, await context.records.approvals.find(open_only=False))
        return as_json(filter_approvals(views, person_of(request)), list[ApprovalView])

    @router.get("/approvals/{id}")
    async def approval(id: str, request: Request) -> ApprovalView:
        (view,) = filter_approvals([await load_view(context, id)], person_of(request))
        return view

    @router.post("/approvals/{id}/answer")
    async def answer(id: str, body: AnswerBody, request: Request) -> ApprovalView:
        try:
            await _answer(context, id, body, request)
        except Conflict:
            await context.journal.committed(context.journal.head)
            if not body.request_id or await context.records.approvals.request_id(id) != body.request_id:
                raise
        await context.journal.committed(context.journal.head)  # the answer, and the rules made with it
        return await load_view(context, id)

    @router.post("/approvals/{id}/edit")
    async def edit(id: str, body: EditBody) -> EditView:
        call, _ = await get_open(context, id)
        return edit_view(await person_actions.edit(context.gate, call, body.input, body.content))

    @router.get("/approvals/{id}/proposal")
    async def proposal(id: str) -> ProposalView:
        call, _ = await get_open(context, id)
        return proposal_view(await person_actions.proposal(context.gate, call))

    @router.post("/approvals/allow-low")
    async def allow_low(body: AllowLowBody, request: Request) -> list[AllowedLow]:
        items = [await _find_open(context, seen.id, seen.digest) for seen in body.approvals]
        still_open = [item for item in items if not isinstance(item, AllowedLow)]
        allowed = await person_actions.allow_low(context.gate, still_open, actor_of(request))
        await context.journal.committed(context.journal.head)
        results = {each.approval: allowed_view(each) for each in allowed}
        return [item if isinstance(item, AllowedLow) else results[item[0].id] for item in items]

    return router


async def _answer(context: ServerContext, id: str, body: AnswerBody, request: Request) -> None:
    call, approval = await get_open(context, id)
    if person_of(request).limited:
        await check_answer(context.gate, call, approval, body)
    answer = Answer(
        kind=body.answer,
        by=actor_of(request),
        reason=body.reason,
        input=body.input,
        content=body.content,
        comments=body.comments,
        rules=_build_rules(context, call, body),
        request_id=body.request_id,
    )
    await person_actions.answer(context.gate, approval, answer, body.digest)


def _build_rules(context: ServerContext, call: Call, body: AnswerBody) -> tuple[Rule, ...]:
    if body.rule is None:
        return ()
    bodies = body.rule if isinstance(body.rule, list) else [body.rule]
    return tuple(build_rule(context, each, call.caller) for each in bodies)


async def _find_open(context: ServerContext, id: str, digest: str) -> tuple[Approval, str] | AllowedLow:
    """An open approval with its digest, or the result to report if it is already closed."""
    try:
        _, approval = await get_open(context, id)
    except Conflict as problem:
        return AllowedLow(id=id, won=False, message=str(problem))
    return approval, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalContext:
    """Context of an approval that is computed for display."""

    trusted: bool
    risks: tuple[PartRisk, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    usual: Usual | None = None


def find_held_approval(gate: Gate, record: ApprovalRecord) -> Approval | None:
    """The gate's approval for a record. None when its call has ended."""
    call = gate.open.get(record.call)
    approval = call.approval if call else None
    return approval if approval and approval.id == record.id else None


def approval_view(
    record: ApprovalRecord, gate: Gate, context: ApprovalContext, input: Json | None = None
) -> ApprovalView:
    """Build the view of an approval. `input` is needed when its call is no longer open."""
    call, tool, approval = (
        gate.open.get(record.call),
        gate.toolbox.get(record.tool),
        find_held_approval(gate, record),
    )
    source = approval.asked if approval else record
    shown_input = call.input if call else input or {}
    why_not_edit = "" if tool is None else tool.refuse_edit(shown_input)
    if isinstance(source.preview, ResultPreview):
        why_not_edit = HAS_RUN
    return ApprovalView(
        id=record.id,
        call_id=record.call,
        tool=record.tool,
        title=call.title if call else record.title,
        description=tool.description if tool else "",
        status=_status(record),
        risk=source.risk,
        reasons=source.reasons,
        risks=context.risks,
        why=source.why,
        verdicts=source.verdicts,
        digest=source.digest,
        asked_at=record.opened_at,
        elapsed_ms=max(0, (_closed_at(record) or now_ms()) - record.opened_at),
        caller=record.caller,
        client_gone=call is not None and call.client_gone,
        input=shown_input,
        claims=source.claims,
        preview=source.preview,
        reviewable=approval is not None and _has_proposal(approval),
        can_edit=tool is not None and not why_not_edit,
        why_not_edit=why_not_edit,
        trusted=context.trusted,
        suggestions=context.suggestions,
        usual=context.usual,
        edited=record.edited,
        reason=record.reason or record.withdrawn_why or "",
        by=record.answered_by,
    )


def edit_view(edit: EditPreview) -> EditView:
    return EditView(
        digest=edit.digest,
        effect=edit.decision.effect,
        why=edit.decision.why,
        verdicts=edit.decision.verdicts,
        risk=edit.risk.level,
        reasons=edit.risk.reasons,
        risks=part_risks(edit.risk),
        claims=edit.plan.claims,
        preview=edit.plan.preview,
        tells=edit.tells,
    )


def part_risks(weight: CallAssessment) -> tuple[PartRisk, ...]:
    return tuple(PartRisk(level=part.level, reasons=part.reasons) for part in weight.parts)


def proposal_view(proposed: CurrentProposal) -> ProposalView:
    return ProposalView(
        path=proposed.proposal.path,
        before=proposed.proposal.before,
        after=proposed.proposal.after,
        changed=proposed.changed,
        difference=proposed.difference,
    )


def allowed_view(allowed: AllowResult) -> AllowedLow:
    return AllowedLow(id=allowed.approval, won=allowed.won, message=allowed.message)


def describe_closed(record: ApprovalRecord) -> str:
    """A sentence about how an approval was closed, for an answer that came too late."""
    when = f"{format_age(now_ms() - (_closed_at(record) or now_ms()))} ago"
    if record.answer is not None:
        word = "allowed" if record.answer == "allow" else "denied"
        return f"Already {word} by {record.answered_by}, {when}."
    if record.expired_at is not None:
        return f"Already expired, {when}: nobody answered in time."
    return f"Already withdrawn, {when}: {record.withdrawn_why or 'its call has ended'}."


def _status(record: ApprovalRecord) -> ApprovalStatus:
    if record.answer is not None:
        return "allowed" if record.answer == "allow" else "denied"
    if record.expired_at is not None:
        return "expired"
    return "open" if record.withdrawn_at is None else "withdrawn"


def _closed_at(record: ApprovalRecord) -> int | None:
    return record.answered_at or record.expired_at or record.withdrawn_at


def _has_proposal(approval: Approval) -> bool:
    return approval.open and approval.draft is not None and approval.draft.planned.has_proposal


MAX_DETAILED = 10
"""Approvals of a list that get suggestions, typical durations and per-claim risks, which are slow to compute. A
request for one approval always includes them."""


async def get_record(context: ServerContext, id: str) -> ApprovalRecord:
    record = await context.records.approvals.get(id)
    if record is None:
        raise HTTPException(404, f"There is no approval {id}. `handrail approvals` lists the open ones.")
    return record


async def get_open(context: ServerContext, id: str) -> tuple[Call, Approval]:
    """An open approval and its call. Raises Conflict, with the reason, when it is closed."""
    record = await get_record(context, id)
    call, approval = context.gate.open.get(record.call), find_held_approval(context.gate, record)
    if call is None or approval is None:
        raise Conflict(describe_closed(await get_record(context, id)))
    if not approval.open:
        raise Conflict(approval.closed())
    return call, approval


async def load_view(context: ServerContext, id: str) -> ApprovalView:
    """The view of one approval, complete."""
    record = await get_record(context, id)
    detail = None if record.call in context.gate.open else await context.records.calls.get(record.call)
    around = await _build_context(context, record, _is_trusted(context, record.caller))
    return approval_view(record, context.gate, around, detail and detail.input)


async def load_views(context: ServerContext, records: Sequence[ApprovalRecord]) -> list[ApprovalView]:
    """The views of many approvals. Only the first MAX_DETAILED are complete."""
    callers = {record.caller.workspace: record.caller for record in records}
    trusted = {workspace: _is_trusted(context, caller) for workspace, caller in callers.items()}
    result: list[ApprovalView] = []
    for place, record in enumerate(records):
        trusts = trusted[record.caller.workspace]
        around = (
            await _build_context(context, record, trusts)
            if place < MAX_DETAILED
            else ApprovalContext(trusted=trusts)
        )
        result.append(approval_view(record, context.gate, around))
    return result


async def load_open_views(context: ServerContext) -> list[ApprovalView]:
    """The views of all open approvals. Skips records that the gate has closed and the journal has not written yet."""
    records = await context.records.approvals.still_open()
    return await load_views(
        context, [record for record in records if find_held_approval(context.gate, record)]
    )


def filter_approvals(views: Sequence[ApprovalView], person: Person) -> list[ApprovalView]:
    """The views without what this person may not see."""
    if person.approves:
        return list(views)
    return [view.model_copy(update={"preview": hide_result(view.preview)}) for view in views]


async def _build_context(context: ServerContext, record: ApprovalRecord, trusted: bool) -> ApprovalContext:
    """The context of an approval. A closed one gets no suggestions and risks."""
    approval = find_held_approval(context.gate, record)
    if approval is None or not approval.open:
        return ApprovalContext(trusted=trusted)
    if is_review(approval):
        return ApprovalContext(trusted=trusted)
    usual = await context.records.calls.typical_duration(record.tool, record.title)
    suggestions = tuple(suggestion_view(each) for each in _suggest_rules(context, approval, record))
    risks = part_risks(assess_call(approval.asked.claims))
    return ApprovalContext(trusted=trusted, risks=risks, suggestions=suggestions, usual=usual_view(usual))


def _suggest_rules(context: ServerContext, approval: Approval, record: ApprovalRecord) -> list[SuggestedRule]:
    policy = context.gate.rules.policy(record.caller)
    return suggest_rules(record.tool, approval.asked.claims, record.caller, policy)


def _is_trusted(context: ServerContext, caller: Caller) -> bool:
    return context.gate.rules.policy(caller).here.trusted


PROMPTS = 500
CALLS = 100
"""Past approvals and calls that a rule is tested against. Bounds the time of one request."""


@dataclass(frozen=True, slots=True)
class _PastCall:
    tool: str
    title: str
    caller: Caller
    claims: tuple[Claim, ...]


async def evaluate_rule(context: ServerContext, rule: Rule) -> RuleStatistics:
    """Which past approvals and calls a rule would have decided."""
    prompts, calls = await context.records.approvals.recent(PROMPTS), await _recent_calls(context)
    policies = _current_policies(context, (each.caller for each in (*prompts, *calls)), rule)

    def policy_with(caller: Caller, _rule: Rule) -> Policy:
        return policies[caller.workspace]

    return await anyio.to_thread.run_sync(measure_rule, rule, prompts, calls, policy_with)


async def suggest_repeated_rules(context: ServerContext) -> list[SuggestedRule]:
    """Suggest rules from answers that a person gave repeatedly."""
    prompts = await context.records.approvals.recent(PROMPTS)
    policies = _current_policies(context, (each.caller for each in prompts))

    def policy_of(caller: Caller) -> Policy:
        return policies[caller.workspace]

    return await anyio.to_thread.run_sync(suggest_from_history, prompts, policy_of)


def _current_policies(
    context: ServerContext, callers: Iterable[Caller], extra: Rule | None = None
) -> dict[str | None, Policy]:
    """The current policy of each caller's folder. Built here, because worker threads must not read the live rules."""
    by_folder = {caller.workspace: caller for caller in callers}
    return {folder: context.gate.rules.policy(caller, extra) for folder, caller in by_folder.items()}


async def _recent_calls(context: ServerContext) -> list[_PastCall]:
    histories = [
        await context.records.calls.get(call.id) for call in await context.records.calls.find(limit=CALLS)
    ]
    return [_past_call(each) for each in histories if each is not None]


def _past_call(detail: CallHistory) -> _PastCall:
    call = detail.call
    return _PastCall(tool=call.tool, title=call.title, caller=call.caller, claims=detail.claims)


def require_absolute(text: str) -> str:
    """Check that a path is absolute, and return it."""
    if not text.startswith("/") or "\0" in text:
        raise HTTPException(422, f"{text!r} names no folder. Give its whole path, from / on.")
    return text


def build_rule(context: ServerContext, body: RuleBody, caller: Caller | None = None) -> Rule:
    """Build a rule without adding it. A missing workspace or session is the caller's. Raises BadRule."""
    workspace = None if body.workspace is None else require_absolute(body.workspace)
    return context.gate.rules.build_rule(
        **body.model_dump(exclude={"workspace"}),
        workspace=workspace or (caller and caller.workspace),
        session=caller and caller.key,
    )
