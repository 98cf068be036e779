"""A person's actions on a call: answer, edit, review, cancel, complete.

Each action checks the state of the call and raises Conflict if it comes too late. An answer must quote the digest of
the question it saw. `by` names the person in the record; how the action arrived is unknown here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from handrail.errors import Conflict
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.draft import Draft, canonical_json
from handrail.gate.feedback import describe_feedback
from handrail.gate.gate import Gate
from handrail.gate.pipeline import find_drift
from handrail.gate.result_review import EDITED, HAS_RUN, edited_preview, is_review
from handrail.gate.risk import CallAssessment, assess_call
from handrail.gate.rules.policy import Decision
from handrail.gate.tool import Plan, Proposal, Refusal, Salvage
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.values import Comment, Json, Result

CANCELLED = "Cancelled by user"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPreview:
    """Preview of a call with a person's change: its plan, risk and decision."""

    digest: str
    decision: Decision
    risk: CallAssessment
    plan: Plan
    tells: str
    """The message that the agent will get about the change."""


class CurrentProposal(NamedTuple):
    """The file before and after the call, and how it changed since the approval was opened."""

    proposal: Proposal
    changed: str | None
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowResult:
    """Result for one approval of `allow_low`."""

    approval: str
    won: bool
    message: str
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Effect of Complete on a call in its current state, and the message for the client."""

    does: Literal["return_output", "accept_diff", "cancel"]
    tells: str
    runs_on: bool
    salvage: Salvage | None = None


async def answer(gate: Gate, approval: Approval, answer: Answer, digest: str) -> int:
    """Answer an approval and add the rules of the answer; returns the event's sequence number.

    `digest` is the approval's, or that of `edit` if the answer has input or content. Raises Conflict if the approval is
    closed, the digest is stale or a rule denies the call; Refusal for an invalid edit. Only an edit, and adding rules,
    awaits anything.
    """
    call = gate.open.get(approval.call)
    if call is None:
        raise Conflict(approval.closed())
    draft: Draft | None = None
    if is_review(approval):
        if answer.input is not None or answer.rules:
            raise Refusal(HAS_RUN)
    elif answer.kind == "deny":
        answer = replace(answer, input=None, content=None)
    elif answer.input is not None or answer.content is not None:
        draft = await edited(gate, call, answer.input, answer.content)
        if answer.input is not None and canonical_json(answer.input) == canonical_json(call.input):
            answer = replace(answer, input=None)  # the person left the input unchanged
    seq = settle(gate, call, answer, digest, draft)
    await add_rules(gate, call, approval, draft)
    return seq


async def edit(gate: Gate, call: Call, input: Json | None = None, content: str | None = None) -> EditPreview:
    """Preview a waiting call with a change, or as it is now if there is no change. Raises Conflict or Refusal.

    For a call whose result is reviewed, `content` is the text that the agent gets in its place.
    """
    approval = find_open_approval(call)
    if is_review(approval):
        return _edit_result(approval, input, content)
    draft = await edited(gate, call, input, content)
    return EditPreview(
        digest=draft.digest,
        decision=draft.decision,
        risk=assess_call(draft.plan.claims),
        plan=draft.plan,
        tells=describe_feedback(
            draft.planned.tool.describe_edit(call.input, draft.planned.input),
            draft.planned.tool.describe_review(draft.plan),
        ),
    )


def _edit_result(approval: Approval, input: Json | None, content: str | None) -> EditPreview:
    if input is not None:
        raise Refusal(HAS_RUN)
    asked = approval.asked
    return EditPreview(
        digest=approval.digest,
        decision=Decision(effect="ask", rule="asks a person", why=asked.why),
        risk=CallAssessment(level=asked.risk, reasons=asked.reasons, parts=()),
        plan=Plan(claims=(), preview=edited_preview(approval, content), bound={}),
        tells="" if content is None else EDITED,
    )


async def proposal(gate: Gate, call: Call) -> CurrentProposal:
    """The file that a waiting call would write now. Raises Conflict, or Refusal if it writes no file."""
    approval = find_open_approval(call)
    if is_review(approval):
        raise Refusal(HAS_RUN)
    asked = approval.draft
    try:
        now = await gate.drafts.draft(call.tool, call.input, call.caller)
    except Refusal as refusal:
        if asked is None or asked.planned.proposal is None:
            raise
        drifted = await find_drift(asked, refusal.sentence)
        return CurrentProposal(asked.planned.proposal, drifted.sentence, drifted.difference)
    current = now.planned.proposal
    if current is None:
        raise Refusal(f"{call.tool} proposes no file, so there is nothing to review.")
    approval.footings.add(now.planned.footing)
    if asked is not None and asked.planned.footing == now.planned.footing and asked.digest == approval.digest:
        return CurrentProposal(current, None, "")
    drifted = await find_drift(asked, now)
    return CurrentProposal(current, drifted.sentence, drifted.difference)


async def allow_low(gate: Gate, seen: Sequence[tuple[Approval, str]], by: Actor) -> list[AllowResult]:
    """Allow several approvals of low risk, each with its digest. Each succeeds or fails independently."""
    return [await _allow_low(gate, approval, digest, by) for approval, digest in seen]


def cancel(gate: Gate, call: Call, by: Actor) -> bool:
    """Cancel the call and stop its work; its output so far is kept and returned. False if it had already ended."""
    return gate.end(call, Outcome(ending="cancelled", by=by, message=CANCELLED))


def completion(gate: Gate, call: Call) -> Completion:
    """Describe the effect of Complete without doing it."""
    tool = gate.toolbox[call.tool]
    if call.status == "waiting":
        if call.plan is not None:
            return Completion(
                does="cancel", tells="Cancelled by user; the result is withheld.", runs_on=False
            )
        if tool.completes_by_accepting:
            return Completion(does="accept_diff", tells="The diff is accepted as shown.", runs_on=False)
        return Completion(does="cancel", tells=CANCELLED, runs_on=False)
    salvage = gate.salvage(call)
    if salvage is None:
        return Completion(does="cancel", tells=CANCELLED, runs_on=False)
    return Completion(does="return_output", tells=salvage.message, runs_on=salvage.runs_on, salvage=salvage)


def complete(
    gate: Gate,
    call: Call,
    by: Actor,
    *,
    stop: bool = False,
    text: str | None = None,
    digest: str | None = None,
) -> bool:
    """End the call with its partial result, or with `text`; False if it had already ended. `stop` also ends the work.

    For a waiting call, accepts the shown diff (quoting `digest`) or cancels. Raises Conflict.
    """
    if text is not None:
        return _return_text(gate, call, by, text, stop)
    chosen = completion(gate, call)
    match chosen.does:
        case "cancel":
            return cancel(gate, call, by)
        case "accept_diff":
            return _accept(gate, call, by, digest)
        case "return_output":
            message = "Force-completed by user; the work was stopped." if stop else chosen.tells
            outcome = Outcome(ending="completed", by=by, message=message)
            won = gate.settle_with(call, outcome, chosen.salvage)
            if won and (stop or not chosen.runs_on):
                call.scope.cancel()
            return won


async def accept(
    gate: Gate, call: Call, by: Actor, digest: str, content: str, comments: tuple[Comment, ...] = ()
) -> bool:
    """Complete a waiting write with the person's edited content; `digest` is that of `edit`. False if it had ended."""
    review = Answer(kind="allow", by=by, content=content, comments=comments)
    try:
        await answer(gate, find_open_approval(call), review, digest)
    except Conflict:
        if call.status == "waiting":
            raise
        return False
    return True


async def _allow_low(gate: Gate, approval: Approval, digest: str, by: Actor) -> AllowResult:
    risk = approval.asked.risk
    if approval.open and risk != "low":
        message = f"Its risk is {risk}, so it is not allowed together with others. Answer it by itself."
        return AllowResult(approval=approval.id, won=False, message=message)
    if approval.open and approval.plan is not None and approval.plan.asks:
        return AllowResult(
            approval=approval.id, won=False, message=f"{approval.plan.asks} Answer it by itself."
        )
    try:
        seq = await answer(gate, approval, Answer(kind="allow", by=by), digest)
    except Conflict as conflict:
        return AllowResult(approval=approval.id, won=False, message=str(conflict))
    return AllowResult(approval=approval.id, won=True, message="Allowed.", seq=seq)


def _return_text(gate: Gate, call: Call, by: Actor, text: str, stop: bool) -> bool:
    result = Result(text=text, data={"output": text, "output_captured": False})
    message = "Completed by user with the text below; it is the person's, not the tool's."
    is_waiting = call.status == "waiting"
    won = gate.settle(call, Outcome(ending="completed", by=by, message=message, result=result))
    if won and (stop or is_waiting or call.plan is None):  # a call that has not started must not start later
        call.scope.cancel()
    return won


def _accept(gate: Gate, call: Call, by: Actor, digest: str | None) -> bool:
    try:
        settle(gate, call, Answer(kind="allow", by=by), digest or "")
    except Conflict:
        if call.status == "waiting":
            raise
        return False
    return True


STALE = "What you saw is out of date: the question has changed. Look at it again, then answer."
MOVED = "The file has changed since you looked at it. Look at it again, then send your review."


def find_open_approval(call: Call) -> Approval:
    """The call's open approval. Raises Conflict with the reason if it has none or it is closed."""
    if call.approval is None:
        raise Conflict("It waits for nobody's answer.")
    if not call.approval.open:
        raise Conflict(call.approval.closed())
    return call.approval


async def edited(gate: Gate, call: Call, input: Json | None, content: str | None) -> Draft:
    """Draft a waiting call with a person's change, from scratch. Raises Conflict or Refusal.

    A review must start from a shown version of the file, so that it does not overwrite changes that no one has seen.
    """
    approval = find_open_approval(call)
    new_input = call.input if input is None else input
    changes = content is not None or canonical_json(new_input) != canonical_json(call.input)
    if changes and (why := gate.toolbox[call.tool].refuse_edit(call.input, new_input)):
        raise Refusal(why)
    draft = await gate.drafts.draft(call.tool, new_input, call.caller, content)
    if content is not None and input is None and draft.planned.footing not in approval.footings:
        raise Conflict(MOVED)
    return draft


def settle(gate: Gate, call: Call, answer: Answer, digest: str, edit: Draft | None = None) -> int:
    """Check and record an answer; returns the event's sequence number. Never awaits, so check and act are atomic.

    Raises Conflict.
    """
    approval = find_open_approval(call)
    if digest != (approval.digest if edit is None else edit.digest):
        raise Conflict(STALE)
    _check_allowed(gate, call, answer, edit or approval.draft)
    seq = approval.answer(answer, _bound(gate, call, approval, edit) if answer.kind == "allow" else "")
    assert seq is not None
    if edit is not None:
        approval.draft = edit
    return seq


async def add_rules(gate: Gate, call: Call, approval: Approval, edit: Draft | None = None) -> None:
    """Add the rules of an answer and wait until they are durable. Raises BadRule or Unwritable.

    The new rules must not invalidate the answer that adds them, so the allowed digest follows them.
    """
    answer = approval.answered
    if answer is None or not answer.rules:
        return

    def bind_again() -> None:
        if answer.kind == "allow":
            approval.allowed = _bound(gate, call, approval, edit)

    gate.rules.on_apply.append(bind_again)
    try:
        for rule in answer.rules:
            await gate.rules.add(rule, answer.by, approval.id)
    finally:
        gate.rules.on_apply.remove(bind_again)


def _check_allowed(gate: Gate, call: Call, answer: Answer, draft: Draft | None) -> None:
    """Raise Conflict if a rule denies the call: a person's answer cannot override it."""
    if answer.kind == "allow" and draft is not None:
        decision = gate.drafts.decide_again(draft, call.caller).decision
        if decision.effect == "deny":
            raise Conflict(f"This cannot be allowed. {decision.why}")


def _bound(gate: Gate, call: Call, approval: Approval, edit: Draft | None) -> str:
    """The digest that may run: the draft that the person saw, under the current rules.

    If the draft differs from the question since a restart, or is not recomputed yet, the digest of the question stays:
    then only the original draft may run.
    """
    draft = edit or approval.draft
    if draft is None or (edit is None and draft.digest != approval.digest):
        return approval.digest
    return gate.drafts.decide_again(draft, call.caller).digest
