"""list_calls, get_call and wait_for_call: read calls, including results whose client stopped waiting.

An agent sees only the calls of its workspace. These tools do not start, change or end calls.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from pydantic import BaseModel, Field, JsonValue, TypeAdapter

from handrail.errors import Unwritable
from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.calls import CallHistory, CallRecord
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.values import Caller, Claim, Json, Receipt, Result
from handrail.terminal.terminal import Terminal
from handrail.tools.results import REPLY_SECONDS, Format, Input, answer, cap_wait
from handrail.tools.terminals.input_requests import question_of
from handrail.tools.tool_context import ToolContext

if TYPE_CHECKING:
    from handrail.gate.call import Call

WAIT_SECONDS = 40.0
"""Below the shortest client timeout, so that a wait returns its result and is not handed back."""
LOOK_SECONDS = 0.5
"""Poll interval for states without a notification: a command not yet started, a probable question."""


@cache
def _receipt_adapter() -> TypeAdapter[Receipt]:
    return TypeAdapter(Receipt)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPlan(Plan):
    """A query on the call records, and its caller."""

    caller: Caller
    input: Any


def _plan(caller: Caller, input: Input) -> RecallPlan:
    claim = Claim(action="recall", resource="calls", inside=True)
    return RecallPlan(claims=(claim,), bound={}, caller=caller, input=input)


class ListCallsInput(Input):
    open_only: Annotated[bool, Field(description="Only calls that wait or run.")] = False
    limit: Annotated[int, Field(ge=1, le=200, description="How many, newest first.")] = 20
    response_format: Format = "text"


class ListCallsOutput(BaseModel, defer_build=True):
    calls: list[dict[str, Any]] | None = None


class ListCalls(Tool[ListCallsInput, RecallPlan]):
    """List the calls of this workspace."""

    name = "list_calls"
    title = "List calls"
    description = "List your calls in this workspace, newest first, with their status and call_id."
    input = ListCallsInput
    output = ListCallsOutput
    reads_only = True
    repeats = True

    def __init__(self, records: Records) -> None:
        self._records = records

    def display(self, input: ListCallsInput) -> str:
        return "List open calls" if input.open_only else "List calls"

    async def plan(self, input: ListCallsInput, caller: Caller) -> RecallPlan:
        return _plan(caller, input)

    async def run(self, plan: RecallPlan, call: CallReport) -> Result:
        params: ListCallsInput = plan.input
        limit = params.limit + 1  # this call may be in the list
        records = await self._records.calls.find(of=plan.caller, open_only=params.open_only, limit=limit)
        shown = [record for record in records if record.id != call.id][: params.limit]
        lines = [f"{record.id}  {record.status:<11} {record.tool}  {record.title}" for record in shown]
        data: Json = {"calls": [_summarize(record) for record in shown]}
        return answer("\n".join(lines) or "There are no calls.", data, params.response_format)


class GetCallInput(Input):
    call_id: Annotated[str, Field(description="As a result named it.")]
    response_format: Format = "text"


class GetCallOutput(BaseModel, defer_build=True):
    call: dict[str, Any] | None = Field(
        None, description="The call: status, result, message, receipt, waiting_for_input."
    )


class GetCall(Tool[GetCallInput, RecallPlan]):
    """Return one call with its result and final receipt."""

    name = "get_call"
    title = "Get call"
    description = (
        "Get one call: its status, its result when it has one, and its receipt (what ending it really did)."
    )
    input = GetCallInput
    output = GetCallOutput
    reads_only = True
    repeats = True

    def __init__(self, records: Records) -> None:
        self._records = records

    def display(self, input: GetCallInput) -> str:
        return f"Get call {input.call_id}"

    async def plan(self, input: GetCallInput, caller: Caller) -> RecallPlan:
        return _plan(caller, input)

    async def run(self, plan: RecallPlan, call: CallReport) -> Result:
        params: GetCallInput = plan.input
        return _call_result(await _read_own_call(self._records, params.call_id, plan.caller), params)


class WaitForCallInput(GetCallInput):
    wait_seconds: Annotated[float, Field(ge=0, le=3600, description="How long to wait for its outcome.")] = (
        WAIT_SECONDS
    )


class WaitForCall(Tool[WaitForCallInput, RecallPlan]):
    """Wait for a call that was handed back."""

    name = "wait_for_call"
    title = "Wait for call"
    description = (
        "Wait for a call that is `running`, `waiting` or `waiting_for_input`, and get its outcome. It also returns when the "
        "command asks a question that you have not been told of yet (`waiting_for_input`). When the time is up first, its "
        "status is returned as it stands; ask again."
    )
    input = WaitForCallInput
    output = GetCallOutput
    reads_only = True
    repeats = True

    def __init__(self, context: ToolContext, live: Mapping[str, "Call"], journal: Journal) -> None:
        self._context = context
        self._records = context.records
        self._live = live
        self._journal = journal

    def display(self, input: WaitForCallInput) -> str:
        return f"Wait for call {input.call_id}"

    def patience(self, input: WaitForCallInput) -> float | None:
        return input.wait_seconds + REPLY_SECONDS if input.wait_seconds > WAIT_SECONDS else None

    async def plan(self, input: WaitForCallInput, caller: Caller) -> RecallPlan:
        return _plan(caller, input)

    async def run(self, plan: RecallPlan, call: CallReport) -> Result:
        params: WaitForCallInput = plan.input
        await _read_own_call(self._records, params.call_id, plan.caller)
        waited = self._live.get(params.call_id)
        longest = cap_wait(params.wait_seconds, WAIT_SECONDS, call)
        with anyio.move_on_after(longest) as wait:
            if waited is not None:
                await self._wait_for_news(waited, plan.caller.key)
            else:  # it may have just ended: wait until its outcome is in the records
                await self._journal.committed(self._journal.head)
        detail = await _read_own_call(self._records, params.call_id, plan.caller)
        if waited is not None and waited.image is not None:
            call.show_image(waited.image)
        result = _call_result(detail, params, self._asking_terminal(params.call_id, plan.caller.key))
        is_capped = wait.cancelled_caught and longest < params.wait_seconds
        if not is_capped or params.response_format == "json":
            return result
        note = f"This waited {longest:g} s, not {params.wait_seconds:g} s, because your client ends a call that takes longer."
        return replace(result, text=f"{result.text}\n\n{note} Ask again.")

    async def _wait_for_news(self, call: "Call", who: str) -> None:
        """Return when the call has settled, or its command asks a question that is new to `who`."""
        problem: Unwritable | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._wait_for_question, call, who, group.cancel_scope)
            try:
                await call.settled()
            except Unwritable as error:  # raise it bare, not inside an ExceptionGroup
                problem = error
            group.cancel_scope.cancel()
        if problem is not None:
            raise problem

    async def _wait_for_question(self, call: "Call", who: str, scope: anyio.CancelScope) -> None:
        while (terminal := self._context.terminals.get(call.terminal or "")) is None:  # noqa: ASYNC110
            await anyio.sleep(LOOK_SECONDS)  # no notification exists before the terminal does
        while self._context.askings.find_new(terminal, who) is None:
            with anyio.move_on_after(None if terminal.asks is None else LOOK_SECONDS):
                await terminal.changed()
        scope.cancel()

    def _asking_terminal(self, id: str, who: str) -> Terminal | None:
        """The terminal of an open call while it asks for input; marks the question as seen by `who`."""
        call = self._live.get(id)
        terminal = self._context.terminals.get((call and call.terminal) or "")
        if terminal is None or terminal.asks is None:
            return None
        self._context.askings.mark_seen(terminal, who)
        return terminal


async def _read_own_call(records: Records, id: str, caller: Caller) -> CallHistory:
    detail = await records.calls.get(id)
    if detail is None or not _is_own(detail.call, caller):
        raise Refusal(f"There is no call {id} in this workspace. list_calls names the ones there are.")
    return detail


def _is_own(record: CallRecord, caller: Caller) -> bool:
    if record.caller.key == caller.key:
        return True
    return caller.workspace is not None and record.caller.workspace == caller.workspace


def _summarize(record: CallRecord) -> Json:
    return {
        "call_id": record.id,
        "tool": record.tool,
        "title": record.title,
        "status": "force-completed" if record.status == "completed" else record.status,
        "started_at": record.opened_at,
        "terminal_id": record.terminal,
    }


def _call_result(detail: CallHistory, params: GetCallInput, asking: Terminal | None = None) -> Result:
    record = detail.call
    view: dict[str, JsonValue] = {**_summarize(record), "message": record.message, "by": record.settled_by}
    if detail.result is not None:
        view["result"] = detail.result.data
    if detail.receipt is not None:
        view["receipt"] = _receipt_adapter().dump_python(detail.receipt, mode="json")
    words = record.message or ""
    if asking is not None and asking.asks is not None and record.status == "running":
        question = question_of(asking.asks, asking.id, "call wait_for_call again")
        view |= {"status": "waiting_for_input", "terminal_id": asking.id, "waiting_for_input": question}
        words = str(question["advice"])
    text = f"{record.id} {record.tool}: {view['status']}. {words}".rstrip()
    if detail.result is not None:
        text = f"{text}\n\n{detail.result.text}"
    return answer(text, {"call": view}, params.response_format)
