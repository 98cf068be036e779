"""The path of one call: draft, ask, draft again, run. The only module that runs tools.

Owns the order of these steps, and what must be durable before the next. It does not know clients, operations or other
calls (gate.py): it is given a call and says how it came out.

What changed between the question and now: a sentence, and the difference where it is a file's.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio.to_thread

from handrail.errors import Unwritable
from handrail.gate.approval import Answer, Approval, ago
from handrail.gate.call import Call, Outcome, new_id
from handrail.gate.draft import Draft, Drafts, Parsed
from handrail.gate.feedback import words
from handrail.gate.risk import weigh
from handrail.gate.rules.policy import Decision
from handrail.gate.tool import Plan, Refusal
from handrail.store.actor import HANDRAIL, Actor, approval_actor, rule_actor, tool_actor
from handrail.store.events import ApprovalOpened
from handrail.store.journal import Journal
from handrail.store.values import Json, Result

_SINCE = "changed since the question was asked"
_ADVICE = "Nothing was done; look at it as it is now, and ask again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How what would run differs from what was asked about."""

    sentence: str
    difference: str = ""
    """Of the file on disk, as a unified diff, for a person's eyes."""


async def drift(asked: Draft | None, now: Draft | str) -> Drift:
    """What is different; `asked` is None where it is not known any more, `now` a sentence where it cannot be done."""
    if asked is not None:
        found = await anyio.to_thread.run_sync(asked.deed.tool.changed_since, asked.deed.base)
        if found is not None:
            return Drift(sentence=found[0], difference=found[1])
    if isinstance(now, str):
        return Drift(sentence=now)
    if asked is None or asked.digest == now.digest:  # what is asked about now was looked at after a restart
        return Drift(sentence=f"It {_SINCE}, while Handrail was not running. {_ADVICE}")
    return Drift(sentence=f"{_what(asked, now)} {_SINCE}. {_ADVICE}")


def _what(asked: Draft, now: Draft) -> str:
    if asked.plan.bound != now.plan.bound:
        return f"What it depends on ({_names(asked.plan.bound, now.plan.bound)})"
    return "What it would touch" if asked.plan.claims != now.plan.claims else "What the rules say about it"


def _names(asked: Json, now: Json) -> str:
    """Of what is bound and differs."""
    return ", ".join(name for name in {**asked, **now} if asked.get(name) != now.get(name))


log = logging.getLogger(__name__)

LONGEST_DIFFERENCE = 10_000
"""Characters of how a file changed meanwhile that an agent is told; it can read the file for the rest."""


class Path:
    """Takes a call through its steps."""

    def __init__(self, journal: Journal, drafts: Drafts, expire_seconds: float) -> None:
        """A question stays open for ever where `expire_seconds` is 0."""
        self._journal = journal
        self._drafts = drafts
        self._patience = expire_seconds or None

    async def walk(self, call: Call, parsed: Parsed) -> Outcome:
        """All of it, from the first draft on."""
        return await self._outcome(call, lambda: self._decide(call, parsed))

    async def resume(self, call: Call, approval: Approval) -> Outcome:
        """From an open question on."""
        return await self._outcome(call, lambda: self._ask_again(call, approval))

    async def _outcome(self, call: Call, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """The one place where a tool's exceptions become an outcome."""
        try:
            return await work()
        except Refusal as refusal:
            return Outcome(
                ending="failed", by=tool_actor(call.tool), message=refusal.sentence, result=refusal.result
            )
        except Unwritable as problem:
            return Outcome(ending="failed", by=HANDRAIL, message=str(problem))
        except Exception as error:
            log.exception("tool %s failed in call %s", call.tool, call.id)
            message = f"{call.tool} broke: {type(error).__name__}. This is a fault in Handrail; its log has the details."
            return Outcome(ending="failed", by=HANDRAIL, message=message)

    async def _decide(self, call: Call, parsed: Parsed) -> Outcome:
        draft = await self._drafts.first(parsed, call.input, call.caller)
        if call.outcome is not None:  # ended in the tick in which the plan was made: ask nobody
            return call.outcome
        match draft.decision.effect:
            case "deny":
                return _denied_by_rule(draft.decision)
            case "ask":
                asked = _question(new_id("a"), call, draft)
                call.approval = Approval(self._journal, asked, self._journal.append(asked), draft)
                return await self._ask(call, call.approval)
            case "allow":
                return await self._run(call, draft, draft.plan, rule_actor(draft.decision.rule))

    async def _ask_again(self, call: Call, approval: Approval) -> Outcome:
        """Show anew what would run, and wait. The old digest stays: what has changed since will not run."""
        with suppress(Refusal):
            draft = await self._drafts.fresh(call.tool, call.input, call.caller)
            approval.asked = replace(_question(approval.id, call, draft), digest=approval.digest)
            approval.show(draft)
        return await self._ask(call, approval)

    async def _ask(self, call: Call, approval: Approval) -> Outcome:
        """Wait for the answer."""
        await self._journal.committed(approval.asked_seq)
        await self._journal.committed(call.opened_seq)
        answer = await approval.wait(self._patience)
        if call.outcome is not None:  # ended in the tick of its answer: it must not start
            return call.outcome
        if answer is None:
            return expired(approval.expired_ms or 0)
        if answer.kind == "deny":
            return Outcome(ending="denied", by=answer.by, message=words(answer.reason, answer.comments))
        return await self._act(call, approval, answer)

    async def _act(self, call: Call, approval: Approval, answer: Answer) -> Outcome:
        """Work it out once more: what was allowed must still be what would run, and nothing may forbid it."""
        wanted = call.input if answer.input is None else answer.input
        try:
            now = await self._drafts.fresh(call.tool, wanted, call.caller, answer.content)
            plan = await now.deed.commented(answer.comments)
        except Refusal as refusal:  # it could be done when it was asked
            return _void(approval, await drift(approval.draft, refusal.sentence))
        if now.decision.effect == "deny":
            return _denied_by_rule(now.decision)
        if answer.by.rule is not None and now.decision.effect != "allow":
            return _void(approval, Drift(sentence=_withdrawn(answer.by.rule)))
        if now.digest != approval.allowed:
            return _void(approval, await drift(approval.draft, now))
        call.edited = answer.input
        call.said = words(answer.reason, answer.comments if plan is now.plan else ())
        return await self._run(
            call, now, plan, answer.by if answer.by.rule is not None else approval_actor(approval.id)
        )

    async def _run(self, call: Call, draft: Draft, plan: Plan, allowed_by: Actor) -> Outcome:
        if call.outcome is not None:  # ended in the tick of its answer: it must not start
            return call.outcome
        started = call.start(plan, allowed_by, _allowing(draft.decision))
        if plan.acts:
            await self._journal.committed(started)
            await self._journal.committed(call.opened_seq)
            if call.outcome is not None:  # ended in the tick of that commit: it must not act
                return call.outcome
            decision = self._drafts.again(draft, call.caller).decision
            if decision.effect == "deny":  # by a rule that came while it was committed
                return _denied_by_rule(decision)
            if allowed_by.rule is not None and decision.effect != "allow":  # it was removed meanwhile
                return _no_longer(allowed_by.rule)
        call.plan = plan
        result = await draft.deed.tool.run(plan, call)
        return Outcome(ending="done", by=tool_actor(call.tool), result=result)


def _question(id: str, call: Call, draft: Draft) -> ApprovalOpened:
    weight = weigh(draft.plan.claims)
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


def _allowing(decision: Decision) -> tuple[str, ...]:
    """The rules that allowed something of it; the rest a person did."""
    return tuple(dict.fromkeys(each.rule for each in decision.verdicts if each.effect == "allow"))


def _denied_by_rule(decision: Decision) -> Outcome:
    return Outcome(ending="denied", by=rule_actor(decision.rule), message=decision.why)


def _no_longer(rule: str) -> Outcome:
    message = f"{_withdrawn(rule)} Nothing was done; ask again."
    return Outcome(ending="failed", by=HANDRAIL, message=message)


def _withdrawn(rule: str) -> str:
    return f"Rule {rule}, which had allowed it, does so no longer."


def expired(after_ms: int) -> Outcome:
    """Nobody answered in the time that was set."""
    message = (
        f"Expired: nobody answered within {ago(after_ms)}. Nothing was run; ask again when somebody is there."
    )
    return Outcome(ending="failed", by=HANDRAIL, message=message)


def _void(approval: Approval, found: Drift) -> Outcome:
    """Something else would run by now. Of a place that the agent may not read, it is told only that."""
    plan = approval.plan
    readable = plan is not None and all(claim.inside and not claim.protected for claim in plan.claims)
    result = None
    if found.difference and readable:
        told = found.difference[:LONGEST_DIFFERENCE]
        result = Result(text=told, data={"difference": told})
    message = f"What was approved is no longer what would run. {found.sentence}"
    return Outcome(ending="failed", by=HANDRAIL, message=message, result=result)
