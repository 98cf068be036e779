"""The pipeline of one call: draft, decide, ask, draft again, run. The only module that runs tools.

Owns the order of the steps and which events must be durable before the next step. It returns the outcome; clients,
operations and other calls belong to gate.py.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio.to_thread

from handrail.errors import Unwritable
from handrail.gate.approval import Answer, Approval, format_age
from handrail.gate.call import Call, Outcome, new_id
from handrail.gate.draft import Draft, Drafts, ParsedCall
from handrail.gate.feedback import join_comments
from handrail.gate.result_review import open_review, reviewed_outcome
from handrail.gate.risk import assess_call
from handrail.gate.rules.pause import JUST_PAUSED, PAUSED
from handrail.gate.rules.policy import Decision
from handrail.gate.tool import Plan, Refusal, Tool, UnknownEnd
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import HANDRAIL, Actor, approval_actor, rule_actor, tool_actor
from handrail.store.events import ApprovalOpened
from handrail.store.journal import Journal
from handrail.store.values import Json, Result

_SINCE = "changed since the question was asked"
_ADVICE = "Nothing was done; look at it as it is now, and ask again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the current draft differs from the draft shown in the approval."""

    sentence: str
    difference: str = ""
    """Unified diff of the file on disk, for a person."""


async def find_drift(asked: Draft | None, now: Draft | str) -> Drift:
    """Describe the difference. `asked` can be None after a restart; `now` is an error sentence if drafting failed."""
    if asked is not None:
        change = await anyio.to_thread.run_sync(asked.planned.tool.changed_since, asked.planned.base)
        if change is not None:
            return Drift(sentence=change[0], difference=change[1])
    if isinstance(now, str):
        return Drift(sentence=now)
    if asked is None or asked.digest == now.digest:  # `asked` was redrafted after a restart
        return Drift(sentence=f"It {_SINCE}, while Handrail was not running. {_ADVICE}")
    return Drift(sentence=f"{_changed_subject(asked, now)} {_SINCE}. {_ADVICE}")


def _changed_subject(asked: Draft, now: Draft) -> str:
    if asked.plan.bound != now.plan.bound:
        return f"What it depends on ({_differing_names(asked.plan.bound, now.plan.bound)})"
    return "What it would touch" if asked.plan.claims != now.plan.claims else "What the rules say about it"


def _differing_names(asked: Json, now: Json) -> str:
    """Names of the bound values that differ."""
    return ", ".join(name for name in {**asked, **now} if asked.get(name) != now.get(name))


log = logging.getLogger(__name__)

LONGEST_DIFFERENCE = 10_000
"""Characters of a diff sent to the agent, to spare its context; it can read the file for the rest."""


class Pipeline:
    """Runs the steps of calls, one call per `walk` or `resume`."""

    def __init__(self, journal: Journal, drafts: Drafts, expire_seconds: float) -> None:
        self._journal = journal
        self._drafts = drafts
        self.expire_seconds = expire_seconds
        """After these seconds an approval expires; 0: never."""

    async def walk(self, call: Call, parsed: ParsedCall) -> Outcome:
        """Run all steps, from the first draft."""
        return await self._outcome(call, lambda: self._decide(call, parsed))

    async def resume(self, call: Call, approval: Approval) -> Outcome:
        """Run the steps from an open approval on, after a restart."""
        return await self._outcome(call, lambda: self._ask_again(call, approval))

    async def rejoin(self, call: Call, parsed: ParsedCall, plan: Plan) -> Outcome:
        """Attend to work that an earlier daemon started."""
        call.plan = plan
        return await self._outcome(call, lambda: self._finish(call, parsed, plan))

    async def _finish(self, call: Call, parsed: ParsedCall, plan: Plan) -> Outcome:
        result = await parsed.tool.rejoin(plan, call)
        return Outcome(ending="done", by=tool_actor(call.tool), result=result)

    async def _outcome(self, call: Call, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Turn the exceptions of a tool into an outcome. No other place does."""
        try:
            return await work()
        except Refusal as refusal:
            return Outcome(
                ending="failed", by=tool_actor(call.tool), message=refusal.sentence, result=refusal.result
            )
        except UnknownEnd as unknown:
            return Outcome(ending="interrupted", by=HANDRAIL, message=unknown.sentence, result=unknown.result)
        except Unwritable as problem:
            return Outcome(ending="failed", by=HANDRAIL, message=str(problem))
        except Exception as error:
            log.exception("tool %s failed in call %s", call.tool, call.id)
            message = f"{call.tool} broke: {type(error).__name__}. This is a fault in Handrail; its log has the details."
            return Outcome(ending="failed", by=HANDRAIL, message=message)

    async def _decide(self, call: Call, parsed: ParsedCall) -> Outcome:
        draft = await self._drafts.draft_parsed(parsed, call.input, call.caller)
        if call.outcome is not None:  # the call ended while the plan was made: open no approval
            return call.outcome
        match draft.decision.effect:
            case "deny":
                return _denied_by_rule(draft.decision)
            case "ask":
                event = _opened_event(new_id("a"), call, draft)
                call.approval = Approval(self._journal, event, self._journal.append(event), draft)
                return await self._ask(call, call.approval)
            case "allow":
                return await self._run(call, draft, draft.plan, rule_actor(draft.decision.rule))

    async def _ask_again(self, call: Call, approval: Approval) -> Outcome:
        """Redraft, show the draft and wait. The digest stays the same, so a changed draft cannot run."""
        if not approval.open:  # it was answered under an earlier daemon
            return await self._ask(call, approval)
        with suppress(Refusal):
            draft = await self._drafts.draft(call.tool, call.input, call.caller)
            approval.asked = replace(_opened_event(approval.id, call, draft), digest=approval.digest)
            approval.show(draft)
        return await self._ask(call, approval)

    async def _ask(self, call: Call, approval: Approval) -> Outcome:
        """Wait for the answer, then deny, expire or run."""
        await self._journal.committed(approval.asked_seq)
        await self._journal.committed(call.opened_seq)
        answer = await approval.wait(self.expire_seconds or None)
        if call.outcome is not None:  # the call ended as it was answered: it must not start
            return call.outcome
        if answer is None:
            return expired_outcome(approval.expired_ms or 0)
        if answer.kind == "deny":
            return Outcome(
                ending="denied", by=answer.by, message=join_comments(answer.reason, answer.comments)
            )
        return await self._act(call, approval, answer)

    async def _act(self, call: Call, approval: Approval, answer: Answer) -> Outcome:
        """Redraft and run, if the digest is still the allowed one and no rule denies it."""
        new_input = call.input if answer.input is None else answer.input
        await self._drafts.wait_ready(call.tool, new_input, approval.closed_ms)
        if call.outcome is not None:  # the call ended meanwhile: it must not start
            return call.outcome
        try:
            now = await self._drafts.draft(call.tool, new_input, call.caller, answer.content)
            plan = await now.planned.commented(answer.comments)
        except Refusal as refusal:  # drafting succeeded when the approval was opened
            return _void(approval, await find_drift(approval.draft, refusal.sentence))
        if now.decision.effect == "deny":
            return _denied_by_rule(now.decision)
        if answer.by.rule is not None and now.decision.effect != "allow":
            return _void(approval, Drift(sentence=_describe_withdrawn(answer.by.rule)))
        if now.digest != approval.allowed:
            return _void(approval, await find_drift(approval.draft, now))
        call.edited = answer.input
        call.said = join_comments(answer.reason, answer.comments if plan is now.plan else ())
        return await self._run(
            call, now, plan, answer.by if answer.by.rule is not None else approval_actor(approval.id)
        )

    async def _run(self, call: Call, draft: Draft, plan: Plan, allowed_by: Actor) -> Outcome:
        if call.outcome is not None:  # the call ended as it was answered: it must not start
            return call.outcome
        started = call.start(plan, allowed_by, _allowing_rules(draft.decision), draft.planned.title)
        if plan.acts:
            await self._journal.committed(started)
            await self._journal.committed(call.opened_seq)
            if call.outcome is not None:  # the call ended during the commit: it must not act
                return call.outcome
            decision = self._drafts.decide_again(draft, call.caller).decision
            if decision.effect == "deny":  # a rule was added during the commit
                return _denied_by_rule(decision)
            if (
                allowed_by.rule is not None and decision.effect != "allow"
            ):  # the rule was removed during the commit
                return _fail_rule_withdrawn(allowed_by.rule, decision)
        call.plan = plan
        if not plan.reviews_result:
            return await self._use(call, draft.planned.tool, plan)
        outcome = await self._outcome(call, lambda: self._use(call, draft.planned.tool, plan))
        return await self._review(call, draft.planned.tool, outcome)

    async def _use(self, call: Call, tool: Tool[Any, Any], plan: Plan) -> Outcome:
        result = await tool.run(plan, call)
        return Outcome(ending="done", by=tool_actor(call.tool), result=result)

    async def _review(self, call: Call, tool: Tool[Any, Any], outcome: Outcome) -> Outcome:
        """Let a person look at what another server answered. The call holds the answer only if it is passed on as it is."""
        relayed, call.relayed = call.relayed, None
        if relayed is None or call.outcome is not None:
            return outcome
        event = open_review(new_id("a"), call, tool.preview_answer(relayed))
        approval = call.approval = Approval(self._journal, event, self._journal.append(event))
        await self._journal.committed(approval.asked_seq)
        answer = await approval.wait(self.expire_seconds or None)
        if call.outcome is not None:  # the call ended as it was answered
            return call.outcome
        if answer is not None and answer.kind == "allow":
            said = join_comments(answer.reason, answer.comments)
            call.said = "\n".join(filter(None, (call.said, said)))
            call.relayed = relayed if answer.content is None else None
        return reviewed_outcome(approval, outcome, answer)


def _opened_event(id: str, call: Call, draft: Draft) -> ApprovalOpened:
    weight = assess_call(draft.plan.claims)
    return ApprovalOpened(
        approval=id,
        call=call.id,
        digest=draft.digest,
        claims=draft.plan.claims,
        risk=weight.level,
        reasons=weight.reasons,
        why=draft.decision.why,
        preview=draft.plan.preview,
        verdicts=draft.decision.verdicts,
    )


def _allowing_rules(decision: Decision) -> tuple[str, ...]:
    """Ids of the rules that allowed some claim; a person allowed the others."""
    return tuple(dict.fromkeys(each.rule for each in decision.verdicts if each.effect == "allow"))


def _denied_by_rule(decision: Decision) -> Outcome:
    return Outcome(ending="denied", by=rule_actor(decision.rule), message=decision.why)


def _fail_rule_withdrawn(rule: str, now: Decision) -> Outcome:
    reason = JUST_PAUSED if now.rule == PAUSED else _describe_withdrawn(rule)
    message = f"{reason} Nothing was done; ask again."
    return Outcome(ending="failed", by=HANDRAIL, message=message)


def _describe_withdrawn(rule: str) -> str:
    return f"Rule {rule}, which had allowed it, does so no longer."


def expired_outcome(after_ms: int) -> Outcome:
    """Outcome of a call whose approval expired."""
    message = f"Expired: nobody answered within {format_age(after_ms)}. Nothing was run; ask again when somebody is there."
    return Outcome(ending="failed", by=HANDRAIL, message=message)


def _void(approval: Approval, drift: Drift) -> Outcome:
    """Outcome of a call whose draft changed after approval; with the diff only if the agent may read the file."""
    plan = approval.plan
    readable = plan is not None and all(claim.inside and not claim.protected for claim in plan.claims)
    result = None
    if drift.difference and readable:
        diff = drift.difference[:LONGEST_DIFFERENCE]
        result = Result(text=diff, data={"difference": diff})
    message = f"What was approved is no longer what would run. {drift.sentence}"
    return Outcome(ending="failed", by=HANDRAIL, message=message, result=result)


def decide_again(drafts: Drafts, calls: Iterable[Call]) -> None:
    """Let the current rules answer open approvals; update the reason of those that stay open."""
    for call in calls:
        approval = call.approval
        if approval is None or approval.draft is None or not approval.open:
            continue
        try:
            _decide(approval, drafts.decide_again(approval.draft, call.caller))
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
