"""A person's verbs about a call: answer, cancel, complete.

Owns what each verb means at each moment of a call. It does not know who the person is or where they sit;
`by` says so, for the record.
"""

from dataclasses import dataclass
from typing import Literal

from handrail.errors import Conflict
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate
from handrail.store.value import Result

CANCELLED = "Cancelled by user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What Complete would do to a call right now, and what the client would be told."""

    does: Literal["return_output", "accept_diff", "cancel"]
    tells: str
    runs_on: bool
    result: Result | None = None


def answer(approval: Approval, answer: Answer, digest: str) -> int:
    """Answer an approval, as seen with this digest; the fact's number. Raises Conflict for the loser."""
    if digest != approval.digest and approval.open:
        raise Conflict(
            "What you saw is out of date: the question has changed. Look at it again, then answer."
        )
    seq = approval.answer(answer)
    if seq is None:
        raise Conflict(_decided(approval))
    return seq


def cancel(gate: Gate, call: Call, by: str) -> bool:
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
    return Completion(
        does="return_output", tells=salvage.message, runs_on=salvage.runs_on, result=salvage.result
    )


def complete(
    gate: Gate, call: Call, by: str, *, stop: bool = False, text: str | None = None, digest: str | None = None
) -> bool:
    """Stop the waiting: hand the client what there is. With `stop`, end the work too."""
    if text is not None:
        return _return_text(gate, call, by, text, stop)
    chosen = completion(gate, call)
    match chosen.does:
        case "cancel":
            return cancel(gate, call, by)
        case "accept_diff":
            return _accept(call, by, digest)
        case "return_output":
            tells = "Force-completed by user; the work was stopped." if stop else chosen.tells
            outcome = Outcome(ending="completed", by=by, message=tells, result=chosen.result)
            won = gate.settle(call, outcome)
            if won and (stop or not chosen.runs_on):
                call.scope.cancel()
            return won


def _return_text(gate: Gate, call: Call, by: str, text: str, stop: bool) -> bool:
    result = Result(text=text, data={"output": text, "output_captured": False})
    message = "Completed by user with the text below; it is the person's, not the tool's."
    won = gate.settle(call, Outcome(ending="completed", by=by, message=message, result=result))
    if won and (stop or call.plan is None):  # what has not begun never begins
        call.scope.cancel()
    return won


def _accept(call: Call, by: str, digest: str | None) -> bool:
    if call.approval is None:
        return False
    try:
        answer(call.approval, Answer(kind="allow", by=by), digest or "")
    except Conflict:
        if call.approval.open:
            raise
        return False
    return True


def _decided(approval: Approval) -> str:
    if approval.answered is not None:
        word = "allowed" if approval.answered.kind == "allow" else "denied"
        return f"Already {word} by {approval.answered.by}."
    return f"Already withdrawn: {approval.withdrawn}."
