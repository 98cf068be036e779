"""Answering a question: what an answer must have seen, what it then allows, and which rules come of it.

Owns that one step between two ticks, in which the first wins. It does not know where answers come from (verbs.py), nor
what becomes of the call (path.py).
"""

from handrail.errors import Conflict, Unwritable
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call
from handrail.gate.digest import canonical
from handrail.gate.draft import Draft
from handrail.gate.gate import Gate
from handrail.gate.tool import Refusal
from handrail.store.value import Json

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
