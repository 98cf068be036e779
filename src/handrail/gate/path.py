"""The path of one call: plan, decide, ask, plan again, run. The only module that runs tools.

Owns the order of these steps, and what must be durable before the next. It does not know clients, operations or other
calls (gate.py): it is given a call and says how it came out.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from handrail.errors import Unwritable
from handrail.gate.approval import Approval
from handrail.gate.call import Call, Outcome, new_id
from handrail.gate.digest import digest
from handrail.gate.parse import Parsed
from handrail.gate.risk import assess
from handrail.gate.rule import Decision, Policy
from handrail.gate.tool import Plan, Refusal
from handrail.store.event import ApprovalOpened
from handrail.store.journal import Journal

log = logging.getLogger(__name__)


class Path:
    """Takes a call through its steps."""

    def __init__(self, journal: Journal, policy: Policy) -> None:
        self.policy = policy
        """In force now; a change after the question was asked makes its answer void."""
        self._journal = journal

    async def walk(self, call: Call, parsed: Parsed) -> Outcome:
        """All of it, from the first plan on."""
        return await self._outcome(call, lambda: self._decide(call, parsed))

    async def resume(self, call: Call, parsed: Parsed, approval: Approval) -> Outcome:
        """From an open question on."""
        return await self._outcome(call, lambda: self._ask_again(call, parsed, approval))

    async def _outcome(self, call: Call, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """The one place where a tool's exceptions become an outcome."""
        try:
            return await work()
        except Refusal as refusal:
            return Outcome(ending="failed", by=call.tool, message=refusal.sentence, result=refusal.result)
        except Unwritable as problem:
            return Outcome(ending="failed", by="handrail", message=str(problem))
        except Exception as error:
            log.exception("tool %s failed in call %s", call.tool, call.id)
            message = f"{call.tool} broke: {type(error).__name__}. This is a fault in Handrail; its log has the details."
            return Outcome(ending="failed", by="handrail", message=message)

    async def _decide(self, call: Call, parsed: Parsed) -> Outcome:
        plan = await parsed.tool.plan(parsed.input, call.caller)
        if call.outcome is not None:  # ended in the tick in which the plan was made: ask nobody
            return call.outcome
        decision = self.policy.decide(plan.claims, call.caller)
        match decision.effect:
            case "deny":
                return Outcome(ending="denied", by=f"rule {decision.rule}", message=decision.why)
            case "ask":
                call.approval = self._approval(call, plan, decision)
                return await self._ask(call, parsed, call.approval)
            case "allow":
                return await self._run(call, parsed, plan, f"rule {decision.rule}")

    def _approval(self, call: Call, plan: Plan, decision: Decision) -> Approval:
        asked = self._question(new_id("a"), call, plan, decision.why)
        return Approval(self._journal, asked, self._journal.append(asked))

    def _question(self, id: str, call: Call, plan: Plan, why: str) -> ApprovalOpened:
        risk = assess(plan.claims)
        return ApprovalOpened(
            approval=id,
            call=call.id,
            digest=digest(call.tool, call.input, plan, self.policy.version),
            claims=plan.claims,
            risk=risk.level,
            reasons=risk.reasons,
            why=why,
            preview=plan.preview,
        )

    async def _ask_again(self, call: Call, parsed: Parsed, approval: Approval) -> Outcome:
        """Show anew what would run, and wait. The old digest stays: what has changed since will not run."""
        with suppress(Refusal):
            plan = await parsed.tool.plan(parsed.input, call.caller)
            anew = self._question(approval.id, call, plan, approval.asked.why)
            approval.asked = replace(anew, digest=approval.digest)
        return await self._ask(call, parsed, approval)

    async def _ask(self, call: Call, parsed: Parsed, approval: Approval) -> Outcome:
        """Wait for the person; what was approved must still be what would run."""
        await self._journal.committed(approval.asked_seq)
        await self._journal.committed(call.opened_seq)
        answer = await approval.wait()
        if answer.kind == "deny":
            return Outcome(ending="denied", by=answer.by, message=answer.reason)
        plan = await parsed.tool.plan(parsed.input, call.caller)
        if digest(call.tool, call.input, plan, self.policy.version) != approval.digest:
            sentence = (
                "What was approved is no longer what would run: it changed since the question was asked."
            )
            return Outcome(ending="failed", by="handrail", message=f"{sentence} Nothing was done; ask again.")
        return await self._run(call, parsed, plan, f"approval {approval.id}")

    async def _run(self, call: Call, parsed: Parsed, plan: Plan, allowed_by: str) -> Outcome:
        if call.outcome is not None:  # ended in the tick of its answer: it must not start
            return call.outcome
        started = call.start(plan, allowed_by)
        if plan.acts:
            await self._journal.committed(started)
            await self._journal.committed(call.opened_seq)
            if call.outcome is not None:  # ended in the tick of that commit: it must not act
                return call.outcome
        call.plan = plan
        result = await parsed.tool.run(plan, call)
        return Outcome(ending="done", by=call.tool, result=result)
