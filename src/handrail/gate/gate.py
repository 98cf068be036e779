"""The gate: the single entry point for calls. Every effect an agent asks for passes through `submit`.

Holds the open calls and operations, runs each call in a task and builds the reply to the client. The steps of a call
are in pipeline.py, a person's actions in person_actions.py, the rules in rules/. When the rules change, open approvals
are decided again. It knows no protocol.
"""

import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from handrail.errors import Unwritable
from handrail.gate.approval import Approval
from handrail.gate.call import Call, Outcome, new_id
from handrail.gate.draft import (
    Drafts,
    ParsedCall,
    cut_name,
    describe_unknown_tool,
    find_excess,
    is_same_input,
    parse,
)
from handrail.gate.operation import Operation
from handrail.gate.pipeline import Pipeline, decide_again
from handrail.gate.result_review import STOPPED_REVIEW
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Salvage, Toolbox
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import CLIENT, HANDRAIL, NOBODY, OPERATION, agent_actor, tool_actor
from handrail.store.events import (
    ApprovalOpened,
    CallClientBack,
    CallClientGone,
    Event,
    OperationEnded,
    OperationOpened,
)
from handrail.store.journal import Journal
from handrail.store.values import Caller, Claim, Ending, FileChange, Json, Result

log = logging.getLogger(__name__)

STOPPED_WHILE = "Handrail stopped while this ran; its outcome is unknown and it was not run again."
STOPPED_BEFORE = "Handrail stopped before this began, so nothing was done. Ask again when it is back."
STOPPED_ASKING = "Handrail stopped while a person was asked. Nothing was allowed; ask again when it is back."
UNASKED = "The agent did this without asking. Handrail recorded it afterwards, as the agent described it."
OPEN_MAX = 2000
"""Open calls of one caller, waiting or running: bounds memory. A person could not answer that many either."""
OPEN_TOTAL = 8000
"""Open calls of all callers."""
_CROWD_ADVICE = "Wait for some with wait_for_call, or ask the person to answer or cancel them."


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A caller's request to use a tool."""

    tool: str
    input: Json
    caller: Caller
    patience: float
    """Seconds until an open call is handed back, unless the input sets its own limit (`Tool.patience`)."""
    patience_max: float = math.inf
    """The longest that this client waits for an answer, whatever the input says."""
    anew: bool = False
    """Never treat this as a retry of an equal open call: this client does not time out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Reply to the client: the outcome, or None if the call is still open."""

    call: Call
    outcome: Outcome | None
    repeated: bool = False
    """`call` is an equal call that was already open; no new call was opened."""
    asked_wait: float | None = None
    """Seconds that the input asked to wait, if the client does not wait that long."""


class Gate:
    """Carries calls from request to outcome."""

    def __init__(
        self, journal: Journal, rules: Rules, toolbox: Toolbox, group: TaskGroup, expire_seconds: float = 0
    ) -> None:
        """Approvals expire after `expire_seconds`; 0 means never."""
        self.journal = journal
        self.rules = rules
        self.toolbox = toolbox
        self.drafts = Drafts(rules, toolbox)
        self.open: dict[str, Call] = {}
        """Calls without an outcome."""
        self.operations: dict[str, Operation] = {}
        self.pipeline = Pipeline(journal, self.drafts, expire_seconds)
        self._group = group
        self._left = False
        self._work_stays = False
        """At shutdown: the keeper keeps running processes for the next daemon."""
        rules.on_change.append(self._decide_open_again)

    async def submit(self, request: Request, opened: Callable[[Call], None] | None = None) -> Reply:
        """Run a call and return its outcome, or hand it back when the client's patience ends.

        Cancelling this await cancels the call, unless it was handed back before. `opened` is called with the new call.
        """
        return await self._handle(request, opened, advisory=False)

    async def ask(self, request: Request, opened: Callable[[Call], None] | None = None) -> Reply:
        """Decide about work that the agent does itself: same rules, same inbox, nothing runs here.

        Waits without a limit. An allowed call is `done` immediately; or the tool hands it back, and it stays open until the
        agent has reported its end.
        """
        unlimited = replace(request, patience=math.inf, anew=True)
        return await self._handle(unlimited, opened, advisory=True)

    async def record(self, request: Request, ending: Ending, opened: Callable[[Call], None]) -> None:
        """Journal work that an agent did without asking: a call that is opened, started and settled immediately.

        There is no decision and no question. What can be shown of the work is the `preview` in the result's data.
        """
        parsed = find_excess(request.input) or self._parse(request, advisory=True)
        if isinstance(parsed, str):
            log.warning("work that %s did unasked is not recorded: %s", request.caller.client, parsed)
            return
        plan = await parsed.tool.plan(parsed.input, request.caller)
        call = self._open(request, parsed)
        opened(call)
        call.start(plan, NOBODY)
        result = Result(text=UNASKED, data={"preview": plan.preview and asdict(plan.preview)})
        by = agent_actor(request.caller.client)
        self.settle(call, Outcome(ending=ending, by=by, result=result), stopped=True)

    async def _handle(
        self, request: Request, opened: Callable[[Call], None] | None, *, advisory: bool
    ) -> Reply:
        excess = find_excess(request.input)
        if excess is not None:
            request = replace(request, input={})  # too large or too deep to be journaled
        parsed = excess or self._parse(request, advisory)
        if isinstance(parsed, ParsedCall) and (twin := self._find_twin(parsed, request)):
            return Reply(call=twin, outcome=None, repeated=True)
        if isinstance(parsed, ParsedCall):
            parsed = self._find_crowd(request.caller, parsed.tool.reads_only) or parsed
        self.mark_client_back(request.caller.key)
        asked = None if isinstance(parsed, str) else parsed.tool.patience(parsed.input)
        call = self._open(request, parsed)
        call.patience = min(request.patience if asked is None else asked, request.patience_max)
        if opened is not None:
            opened(call)
        self._start(call, parsed)
        return await self._reply(call, asked)

    def _find_crowd(self, caller: Caller, reads_only: bool) -> str:
        """Why this caller may open no call now; empty if it may. For a tool that only reads, the bound is twice as high."""
        most, total = (2 * OPEN_MAX, 2 * OPEN_TOTAL) if reads_only else (OPEN_MAX, OPEN_TOTAL)
        if len(self.open) < most:
            return ""
        own = sum(call.caller.key == caller.key for call in self.open.values())
        if own < most and len(self.open) < total:
            return ""
        whose = f"You have {own:,}" if own >= most else f"Handrail has {len(self.open):,}"
        return f"{whose} open calls, which is the most, so nothing was run. {_CROWD_ADVICE}"

    def _parse(self, request: Request, advisory: bool) -> ParsedCall | str:
        """Parse the request. `submit` cannot use an advisory tool, and `ask` can use no other."""
        tool = self.toolbox.get(request.tool)
        if tool is not None and (tool.assurance == "advisory") != advisory:
            return describe_unknown_tool(self.toolbox, request.tool)
        return parse(self.toolbox, request.tool, request.input)

    def can_submit(self, tool: str, input: Json) -> bool:
        """Whether this is a listed tool that does its work itself, and the input is valid for it."""
        known = self.toolbox.get(tool)
        is_listed = known is not None and known.listed and known.assurance == "bound"
        return is_listed and not isinstance(parse(self.toolbox, tool, input), str)

    def settle(self, call: Call, outcome: Outcome, *, stopped: bool = False) -> bool:
        """Set a call's outcome; False if it already has one."""
        try:
            return call.settle(outcome, stopped=stopped)
        except Unwritable as problem:
            call.unrecorded = problem
            log.error("the outcome of call %s could not be recorded: %s", call.id, problem)
            return True
        finally:
            self.open.pop(call.id, None)

    def restore(self, call: Call, question: ApprovalOpened, waited_ms: int = 0) -> None:
        """Reopen a call that was waiting for approval when an earlier daemon ended; its client is gone.

        Its expiry timer goes on: `waited_ms` counts, including the time without a daemon.
        """
        self.mark_client_gone(call)
        # Do not show the stored claims and preview: the database may have been altered. Only the input is run.
        unseen = replace(question, claims=(), risk="high", reasons=(), preview=None, verdicts=())
        call.approval = Approval(self.journal, unseen, waited_ms=waited_ms)
        self.open[call.id] = call
        parsed = parse(self.toolbox, call.tool, call.input)
        if isinstance(parsed, str):
            self.settle(call, Outcome(ending="failed", by=HANDRAIL, message=parsed), stopped=True)
        else:
            call.title = parsed.tool.title_for(parsed.input, call.caller)
            self._group.start_soon(self._run_call, call, partial(self.pipeline.resume, call, call.approval))

    def restore_allowed(self, call: Call, approval: Approval) -> bool:
        """Reopen a call that was allowed under an earlier daemon and has not begun; False if its tool keeps no answers.

        It begins when its agent asks again, if its digest still equals the allowed one.
        """
        parsed = parse(self.toolbox, call.tool, call.input)
        if isinstance(parsed, str) or not parsed.tool.keep_answer(parsed.input):
            return False
        call.approval = approval
        self.open[call.id] = call
        self._group.start_soon(self._run_call, call, partial(self.pipeline.resume, call, approval))
        return True

    async def rejoin(self, call: Call, claims: tuple[Claim, ...], files: tuple[FileChange, ...]) -> bool:
        """Reopen a running call whose work outlived the daemon that started it; False if no such work is found.

        The call is handed back: its client is gone, unless it does the work itself. It can be waited for, cancelled and
        completed as before. `claims` and `files` are those of its start.
        """
        parsed = parse(self.toolbox, call.tool, call.input if call.edited is None else call.edited)
        if isinstance(parsed, str):
            return False
        plan = await parsed.tool.find_work(parsed.input, call)
        if plan is None:
            return False
        self._hand_back_now(call)
        if call.assurance == "bound":
            self.mark_client_gone(call)
        self.open[call.id] = call
        work = partial(self.pipeline.rejoin, call, parsed, replace(plan, claims=claims, files=files))
        self._group.start_soon(self._run_call, call, work)
        return True

    def watch_end(self, call: Call) -> None:
        """Wait in the background for the work of a settled call to end, even if an earlier daemon started it."""
        self._group.start_soon(self._unwind, call)

    def leave(self, *, work_stays: bool = False) -> None:
        """Shut down: interrupt running calls, and leave waiting calls to the next daemon.

        With `work_stays`, calls whose processes stay with the keeper are left to the next daemon too. So is what an agent
        does itself, outside of Handrail.
        """
        self._left, self._work_stays = True, work_stays
        for call in list(self.open.values()):
            if self._is_left_open(call):
                self._hand_back_now(call)  # so that the client gets the call id to ask for later
            self._leave_call(call)

    def _is_left_open(self, call: Call) -> bool:
        """Whether a call without an outcome is left to the next daemon."""
        if call.status == "waiting":
            return call.assurance == "bound" and call.plan is None
        if call.is_allowed_later:
            return True
        stays = self._work_stays or call.assurance == "advisory"
        return stays and call.plan is not None and self.toolbox[call.tool].outlives_daemon(call)

    def _decide_open_again(self) -> None:
        """Called when the rules change. Does nothing during shutdown, so that no new work starts."""
        if not self._leaving:
            decide_again(self.drafts, list(self.open.values()))

    @property
    def _leaving(self) -> bool:
        """The daemon is shutting down, or its task group was cancelled by a crash."""
        return self._left or self._group.cancel_scope.cancel_called

    @asynccontextmanager
    async def operation(self, caller: Caller) -> AsyncGenerator[Operation]:
        """Open an operation for one prompt; its calls use `operation.caller`. Exits when ended calls have stopped."""
        name = new_id("o")
        operation = Operation(name, replace(caller, operation=name), self._end_operation)
        opened = self.journal.append(OperationOpened(operation=name, caller=operation.caller))
        operation.opened_seq = opened
        self.operations[name] = operation
        try:
            with operation.scope:
                yield operation
        finally:
            operation.end()
            if not self._leaving:
                await operation.unwound()

    def _end_operation(self, operation: Operation) -> None:
        """Settle its open calls without waiting for their work to stop, and journal `OperationEnded`."""
        del self.operations[operation.id]
        held = [call for call in self.open.values() if operation.ends_call(call)]
        by = operation.cancelled_by or OPERATION
        cut = Outcome(ending="cancelled", by=by, message="Cancelled with its operation")
        taken = () if self._leaving else tuple(call.id for call in held if self.end(call, cut))
        busy = () if operation.cancelled_by is None else operation.busy_with()
        ended = OperationEnded(
            operation=operation.id,
            cancelled_by=None if operation.cancelled_by is None else str(operation.cancelled_by),
            cancelled_calls=taken,
            cancelled_activities=busy,
            stop="interrupted" if self._leaving and operation.stop is None else operation.stop,
            error=operation.error,
        )
        self._append(ended, completes=operation.opened_seq)

    def _find_twin(self, parsed: ParsedCall, request: Request) -> Call | None:
        """An open call by the same client with the same tool and input that the client no longer waits for."""
        if parsed.tool.repeats or request.anew:
            return None
        for call in self.open.values():
            same = call.caller.key == request.caller.key and call.tool == request.tool
            if (
                same
                and (call.handed_back or call.client_gone)
                and is_same_input(parsed.tool, call.input, request.input)
            ):
                return call
        return None

    def _open(self, request: Request, parsed: ParsedCall | str) -> Call:
        name = cut_name(request.tool)
        title = name if isinstance(parsed, str) else parsed.tool.title_for(parsed.input, request.caller)
        assurance = "bound" if isinstance(parsed, str) else parsed.tool.assurance
        call = Call.open(self.journal, name, title, request.input, request.caller, assurance)
        self.open[call.id] = call
        return call

    def _start(self, call: Call, parsed: ParsedCall | str) -> None:
        """Start the call's task, or settle the call if it cannot run."""
        operation = self.operations.get(call.caller.operation or "")
        if isinstance(parsed, str):
            self.settle(call, Outcome(ending="failed", by=HANDRAIL, message=parsed), stopped=True)
        elif self._leaving:
            message = "Handrail is stopping, so nothing was run. Ask again when it is back."
            self.settle(call, Outcome(ending="failed", by=HANDRAIL, message=message), stopped=True)
        elif operation is None and call.caller.operation is not None:
            message = "Its operation has ended, so nothing was run."
            self.settle(call, Outcome(ending="cancelled", by=OPERATION, message=message), stopped=True)
        else:
            self._group.start_soon(self._run_call, call, partial(self.pipeline.walk, call, parsed), operation)

    async def _reply(self, call: Call, asked: float | None) -> Reply:
        try:
            with anyio.move_on_after(call.patience) as wait:
                await call.due.wait()
        except anyio.get_cancelled_exc_class():
            self._cancel_abandoned(call)
            raise
        if call.outcome is None:
            await self._hand_back(call)
        outcome = call.outcome and await self._wait_recorded(call, call.outcome)
        capped = wait.cancelled_caught and asked is not None and asked > call.patience
        return Reply(call=call, outcome=outcome, asked_wait=asked if capped else None)

    def _hand_back_now(self, call: Call) -> None:
        try:
            call.hand_back()
        except Unwritable as problem:
            log.error("the hand-back of call %s could not be recorded: %s", call.id, problem)

    async def _hand_back(self, call: Call) -> None:
        try:
            await self.journal.committed(call.hand_back())
        except Unwritable as problem:  # the call goes on, so the client still needs its id
            log.error("the hand-back of call %s could not be recorded: %s", call.id, problem)

    async def _wait_recorded(self, call: Call, outcome: Outcome) -> Outcome:
        """The outcome once it is durable. If that fails: `interrupted` for a call with effects, else Unwritable."""
        try:
            await call.recorded()
        except Unwritable as problem:
            if call.plan is None or not call.plan.acts:
                raise
            unknown = f"This had started when the journal could no longer be written ({problem.reason})."
            advice = "Its outcome is unknown: look at what it did before you ask for it again."
            return Outcome(ending="interrupted", by=HANDRAIL, message=f"{unknown} {advice}")
        return outcome

    def _cancel_abandoned(self, call: Call) -> None:
        """Cancel a call whose client stopped waiting: a cancel request, a closed stream or a lost connection."""
        if call.outcome is None and not call.handed_back and not self._leaving:
            self.end(call, Outcome(ending="cancelled", by=CLIENT, message="Cancelled by the client"))

    def end(self, call: Call, outcome: Outcome) -> bool:
        """Settle with the partial result, and cancel the work. False if the call or its work had already ended.

        Work that ended on its own a moment ago is `done`, even if a person wants to end it now.
        """
        salvage = self.salvage(call)
        has_ended = salvage is not None and salvage.ended
        if has_ended:
            outcome = Outcome(ending="done", by=tool_actor(call.tool))
        won = self.settle_with(call, outcome, salvage)
        if won:
            call.scope.cancel()
        return won and not has_ended

    def settle_with(self, call: Call, outcome: Outcome, salvage: Salvage | None) -> bool:
        """Settle with a partial result; False if the call already has an outcome."""
        if salvage is not None and call.outcome is None:
            call.add_receipt(salvage.receipt)
        return self.settle(call, replace(outcome, result=salvage and salvage.result))

    def salvage(self, call: Call) -> Salvage | None:
        """The partial result of a running call. A tool that raises here must not prevent the call from ending."""
        if call.plan is None:
            return None
        try:
            return self.toolbox[call.tool].salvage(call)
        except Exception:
            log.exception("tool %s could not say what call %s has to give", call.tool, call.id)
            return None

    async def _run_call(
        self, call: Call, work: Callable[[], Awaitable[Outcome]], operation: Operation | None = None
    ) -> None:
        """Run one call's work in its cancel scope and settle the call however the work ends."""
        with nullcontext() if operation is None else operation.working(call):
            await self._run_in_scope(call, work)

    async def _run_in_scope(self, call: Call, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            with call.scope:
                outcome = await work()
                self.settle(call, outcome, stopped=not call.unwinding)
                if call.unwinding:
                    await self.toolbox[call.tool].unwind(call)
        except* Exception:  # a failing clean-up must not cancel the other calls
            log.exception("tool %s broke while call %s unwound", call.tool, call.id)
        finally:
            if call.outcome is None:
                self._leave_call(call)  # the task was cancelled by shutdown
            if (
                not self._leaving
            ):  # at shutdown the work may go on: a terminal outlives the daemon in the keeper
                self._stop(call)

    async def _unwind(self, call: Call) -> None:
        if (tool := self.toolbox.get(call.tool)) is not None:
            await tool.unwind(call)
        self._stop(call)

    def _leave_call(self, call: Call) -> None:
        """At shutdown, interrupt the call, or leave it to the next daemon."""
        if call.outcome is None and self._is_left_open(call):
            if call.assurance == "bound":
                self.mark_client_gone(call)
        elif call.status == "running":
            message = STOPPED_BEFORE if call.plan is None else STOPPED_WHILE
            outcome = Outcome(ending="interrupted", by=HANDRAIL, message=message)
            self.settle_with(call, outcome, self.salvage(call))
        elif call.outcome is None and (call.assurance != "bound" or call.plan is not None):
            # The agent that asked ends with this daemon, and so does a result that is not passed on.
            message = STOPPED_ASKING if call.plan is None else STOPPED_REVIEW
            self.settle(call, Outcome(ending="interrupted", by=HANDRAIL, message=message), stopped=True)

    def mark_client_gone(self, call: Call) -> None:
        """Record that the client of an open call has ended, or cannot be answered any more. Idempotent."""
        if not call.client_gone:
            call.client_gone = True
            self._append(CallClientGone(call=call.id))

    def mark_client_back(self, key: str) -> None:
        """Record that the client with this key is connected, for its open calls that were marked gone.

        It does not wait for them any more: it asks for their outcome.
        """
        for call in [each for each in self.open.values() if each.client_gone and each.caller.key == key]:
            call.client_gone = False
            self._append(CallClientBack(call=call.id))
            self._hand_back_now(call)

    def mark_client_left(self, key: str) -> None:
        """Record that the client with this key has disconnected, for its calls that go on without it."""
        if not self._leaving:
            for call in [each for each in self.open.values() if each.caller.key == key and each.handed_back]:
                self.mark_client_gone(call)

    def _stop(self, call: Call) -> None:
        try:
            call.stop()
        except Unwritable as problem:
            log.error("the end of call %s could not be recorded: %s", call.id, problem)

    def _append(self, event: Event, completes: int | None = None) -> None:
        """Append an event that no reply depends on; log a failure."""
        try:
            self.journal.append(event, completes=completes)
        except Unwritable as problem:
            log.error("%s could not be recorded: %s", event.kind, problem)
