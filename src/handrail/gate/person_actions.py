"""A person's verbs about a call: answer, edit, look, cancel, complete.

Owns what each verb means at each moment of a call. It does not know who the person is or where they sit;
`by` says so, for the record.

Answering a question: what an answer must have seen, what it then allows, and which rules come of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from handrail.errors import Conflict, Unwritable
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.draft import Draft, canonical
from handrail.gate.feedback import tells
from handrail.gate.gate import Gate
from handrail.gate.pipeline import drift
from handrail.gate.risk import Weight, weigh
from handrail.gate.rules.policy import Decision
from handrail.gate.tool import Plan, Proposal, Refusal, Salvage
from handrail.store.actor import Actor
from handrail.store.values import Comment, Json, Result

CANCELLED = "Cancelled by user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a call would come to with a person's change, if they allowed it."""

    digest: str
    decision: Decision
    risk: Weight
    plan: Plan
    tells: str
    """What the agent will be told of it."""


class Proposed(NamedTuple):
    """A file as it is and as the call would leave it, and what is different from when the question was asked."""

    proposal: Proposal
    changed: str | None
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What came of one of several questions that were allowed in one step."""

    approval: str
    won: bool
    message: str
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What Complete would do to a call right now, and what the client would be told."""

    does: Literal["return_output", "accept_diff", "cancel"]
    tells: str
    runs_on: bool
    salvage: Salvage | None = None


async def answer(gate: Gate, approval: Approval, answer: Answer, digest: str) -> int:
    """Answer an approval, as seen with this digest; the fact's number. The rules it makes hold once it has won.

    With an input or content of the person's, the digest is that of `edit`. Raises Conflict for the loser, for a
    stale digest and for what a rule forbids; Refusal for a change that cannot be. All but an edit is done at once.
    """
    call = gate.open.get(approval.call)
    if call is None:
        raise Conflict(approval.closed())
    draft: Draft | None = None
    if answer.kind == "deny":
        answer = replace(answer, input=None, content=None)
    elif answer.input is not None or answer.content is not None:
        draft = await edited(gate, call, answer.input, answer.content)
        if answer.input is not None and canonical(answer.input) == canonical(call.input):
            answer = replace(answer, input=None)  # looked at anew, and left as it is
    seq = settle(gate, call, answer, digest, draft)
    await add_rules(gate, call, approval, draft)
    return seq


async def edit(gate: Gate, call: Call, input: Json | None = None, content: str | None = None) -> Edit:
    """What a change would come to; with none, what the call would come to now. Raises Conflict or Refusal."""
    draft = await edited(gate, call, input, content)
    return Edit(
        digest=draft.digest,
        decision=draft.decision,
        risk=weigh(draft.plan.claims),
        plan=draft.plan,
        tells=tells(call.input, draft.deed.input, draft.deed.tool.tells(draft.plan)),
    )


async def proposal(gate: Gate, call: Call) -> Proposed:
    """The file that a waiting call would write, as things are now. Raises Conflict, and Refusal where there is none."""
    approval = question(call)
    asked = approval.draft
    try:
        now = await gate.drafts.fresh(call.tool, call.input, call.caller)
    except Refusal as refusal:
        if asked is None or asked.deed.proposal is None:
            raise
        drifted = await drift(asked, refusal.sentence)
        return Proposed(asked.deed.proposal, drifted.sentence, drifted.difference)
    found = now.deed.proposal
    if found is None:
        raise Refusal(f"{call.tool} proposes no file, so there is nothing to review.")
    approval.footings.add(now.deed.footing)
    if asked is not None and asked.deed.footing == now.deed.footing and asked.digest == approval.digest:
        return Proposed(found, None, "")
    drifted = await drift(asked, now)
    return Proposed(found, drifted.sentence, drifted.difference)


async def allow_low(gate: Gate, seen: Sequence[tuple[Approval, str]], by: Actor) -> list[Allowed]:
    """Allow several questions, each as seen with its digest and each by itself; only those of low risk."""
    return [await _allow_low(gate, approval, digest, by) for approval, digest in seen]


def cancel(gate: Gate, call: Call, by: Actor) -> bool:
    """Stop the work; what it printed so far is kept and returned."""
    return gate.end(call, Outcome(ending="cancelled", by=by, message=CANCELLED))


def completion(gate: Gate, call: Call) -> Completion:
    """What Complete would do, without doing it."""
    tool = gate.toolbox[call.tool]
    if call.status == "waiting":
        if tool.accepts:
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
    """Stop the waiting: hand the client what there is. With `stop`, end the work too."""
    if text is not None:
        return _return_text(gate, call, by, text, stop)
    chosen = completion(gate, call)
    match chosen.does:
        case "cancel":
            return cancel(gate, call, by)
        case "accept_diff":
            return _accept(gate, call, by, digest)
        case "return_output":
            told = "Force-completed by user; the work was stopped." if stop else chosen.tells
            outcome = Outcome(ending="completed", by=by, message=told)
            won = gate.settle_with(call, outcome, chosen.salvage)
            if won and (stop or not chosen.runs_on):
                call.scope.cancel()
            return won


async def accept(
    gate: Gate, call: Call, by: Actor, digest: str, content: str, comments: tuple[Comment, ...] = ()
) -> bool:
    """Complete with a review in hand: the waiting write is accepted as the person left it; `digest` is `edit`'s."""
    given = Answer(kind="allow", by=by, content=content, comments=comments)
    try:
        await answer(gate, question(call), given, digest)
    except Conflict:
        if call.status == "waiting":
            raise
        return False
    return True


async def _allow_low(gate: Gate, approval: Approval, digest: str, by: Actor) -> Allowed:
    risk = approval.asked.risk
    if approval.open and risk != "low":
        message = f"Its risk is {risk}, so it is not allowed together with others. Answer it by itself."
        return Allowed(approval=approval.id, won=False, message=message)
    if approval.open and approval.plan is not None and approval.plan.asks:
        return Allowed(approval=approval.id, won=False, message=f"{approval.plan.asks} Answer it by itself.")
    try:
        seq = await answer(gate, approval, Answer(kind="allow", by=by), digest)
    except Conflict as conflict:
        return Allowed(approval=approval.id, won=False, message=str(conflict))
    return Allowed(approval=approval.id, won=True, message="Allowed.", seq=seq)


def _return_text(gate: Gate, call: Call, by: Actor, text: str, stop: bool) -> bool:
    result = Result(text=text, data={"output": text, "output_captured": False})
    message = "Completed by user with the text below; it is the person's, not the tool's."
    won = gate.settle(call, Outcome(ending="completed", by=by, message=message, result=result))
    if won and (stop or call.plan is None):  # what has not begun never begins
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
NO_EDITS = "This agent cannot take edited input: it does this itself. Allow it as it is, or deny it and say what you want."
MOVED = "The file has changed since you looked at it. Look at it again, then send your review."


def question(call: Call) -> Approval:
    """The call's open question. Raises Conflict, saying who closed it."""
    if call.approval is None:
        raise Conflict("It waits for nobody's answer.")
    if not call.approval.open:
        raise Conflict(call.approval.closed())
    return call.approval


async def edited(gate: Gate, call: Call, input: Json | None, content: str | None) -> Draft:
    """A waiting call with a person's change, worked out from the beginning. Raises Conflict or Refusal.

    A review must start from what people were shown: what was written meanwhile is not theirs to overwrite.
    """
    approval = question(call)
    wanted = call.input if input is None else input
    changes = content is not None or canonical(wanted) != canonical(call.input)
    if changes and not gate.toolbox[call.tool].edits:
        raise Refusal(NO_EDITS)
    draft = await gate.drafts.fresh(call.tool, wanted, call.caller, content)
    if content is not None and input is None and draft.deed.footing not in approval.footings:
        raise Conflict(MOVED)
    return draft


def settle(gate: Gate, call: Call, answer: Answer, digest: str, edit: Draft | None = None) -> int:
    """Answer; the fact's number. Nobody comes between the look and the act. Raises Conflict."""
    approval = question(call)
    if digest != (approval.digest if edit is None else edit.digest):
        raise Conflict(STALE)
    _check_allowed(gate, call, answer, edit or approval.draft)
    seq = approval.answer(answer, _bound(gate, call, approval, edit) if answer.kind == "allow" else "")
    assert seq is not None
    if edit is not None:
        approval.draft = edit
    return seq


async def add_rules(gate: Gate, call: Call, approval: Approval, edit: Draft | None = None) -> None:
    """Make the rules that go with an answer hold, at once; return when they are on record. Raises BadRule.

    A rule that cannot be kept does not hold either: then Unwritable is raised.
    """
    answer, added = approval.answered, dict[str, int]()
    if answer is None or not answer.rules:
        return
    try:
        for rule in answer.rules:
            added[rule.id] = gate.rules.add(rule, answer.by, approval.id)
    finally:
        if answer.kind == "allow":
            approval.allowed = _bound(gate, call, approval, edit)  # a rule of their own voids no answer
    for rule, seq in added.items():
        try:
            await gate.journal.committed(seq)
        except Unwritable:
            gate.rules.drop(rule)
            raise


def _check_allowed(gate: Gate, call: Call, answer: Answer, draft: Draft | None) -> None:
    """No answer overrides a rule that refuses."""
    if answer.kind == "allow" and draft is not None:
        decision = gate.drafts.again(draft, call.caller).decision
        if decision.effect == "deny":
            raise Conflict(f"This cannot be allowed. {decision.why}")


def _bound(gate: Gate, call: Call, approval: Approval, edit: Draft | None) -> str:
    """The digest of what may run: what the person saw, under the rules of now.

    What a restart found to be different from the question, or has not looked at yet, keeps the question's own digest:
    only the very same may run.
    """
    draft = edit or approval.draft
    if draft is None or (edit is None and draft.digest != approval.digest):
        return approval.digest
    return gate.drafts.again(draft, call.caller).digest
