"""Open questions, decided anew when the rules change: one that a rule answers by now is asked no longer.

Owns that one pass. It does not know which rule changed or who changed it; each answer is recorded by itself, as that
of the rule which gave it.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from handrail.errors import Unwritable
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call
from handrail.gate.draft import Draft, Drafts
from handrail.store.actor import rule_actor

log = logging.getLogger(__name__)


def decide_anew(drafts: Drafts, calls: Iterable[Call]) -> None:
    """Let the rules of now answer what they can; the rest stays open, and says why."""
    for call in calls:
        approval = call.approval
        if approval is None or approval.draft is None or not approval.open:
            continue
        try:
            _decide(approval, drafts.again(approval.draft, call.caller))
        except Unwritable as problem:
            log.error("approval %s stays open: its answer could not be recorded: %s", approval.id, problem)


def _decide(approval: Approval, now: Draft) -> None:
    decision = now.decision
    match decision.effect:
        case "ask":
            approval.asked = replace(approval.asked, why=decision.why, verdicts=decision.verdicts)
        case "allow":
            approval.answer(Answer(kind="allow", by=rule_actor(decision.rule)), now.digest)
        case "deny":
            approval.answer(Answer(kind="deny", by=rule_actor(decision.rule), reason=decision.why))
