"""The agent loop: ask the model, run its tool calls, repeat until the prompt is answered.

Decides the order of steps and why an operation ends. Everything slow runs in the scope of an activity, so a
cancellation needs no handling here: the history stays valid when work is cut short. It does not know
providers, tools or the host protocol.
"""

from collections.abc import Sequence
from typing import Literal, cast

import anyio
from pydantic_ai.messages import ModelResponse, ToolCallPart

from handrail.own_agent.activity import Activity, Ending
from handrail.own_agent.budget import Stop
from handrail.own_agent.compaction import compact, is_full
from handrail.own_agent.history import malformed, sendable
from handrail.own_agent.model_request import AgentContext, ask
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.tools.agent_tool import CallDisplay, Result, RunningCall, Tool

__all__ = ["AgentContext", "Stop", "run_loop"]


async def run_loop(context: AgentContext, activity: Activity) -> Stop:
    """Process the last prompt of the history until it is answered, and what was added to it meanwhile (`steering`).
    Raises ModelError.

    If `activity` itself is cancelled, the cancellation propagates and its owner reports `cancelled`.
    """
    with context.budget.clock():
        while context.budget.over() is None:
            stop = await _step(context, activity)
            if stop is not None and not (stop == "end_turn" and context.steering.waiting):
                activity.ending = "cancelled" if stop == "cancelled" else "done"
                return stop
    return _report_limit(context)


def _report_limit(context: AgentContext) -> Stop:
    limit = context.budget.over()
    assert limit is not None, "the loop ends by itself, or by its budget"
    context.host.note(limit.sentence)
    return limit.stop


async def _step(context: AgentContext, activity: Activity) -> Stop | None:
    """Run one step: ask the model once and run its calls. None if the loop continues."""
    stop: Stop | None = "cancelled"
    for content in context.steering.take():
        context.history.add_prompt(content)
    with activity.begin("step", f"Step {context.budget.step()}") as step:
        answer = await _ask_model(context, step)
        if answer is None:
            step.ending = "cancelled"
            return stop
        calls = context.history.add_response(answer)
        stop = _stop_reason(context, answer, calls)
        if stop is None:
            await run_calls(context, calls, step)
    return stop


async def _ask_model(context: AgentContext, step: Activity) -> ModelResponse | None:
    if is_full(context):
        await compact(context, step)
    try:
        return await ask(context, step)
    except ModelError as error:
        if not error.too_long or not await compact(context, step):
            raise
    return await ask(context, step)


def _stop_reason(context: AgentContext, answer: ModelResponse, calls: Sequence[ToolCallPart]) -> Stop | None:
    match answer.finish_reason:
        case "length":
            return _end_incomplete(
                context,
                calls,
                "max_tokens",
                "The answer is cut off: it reached the longest that the model writes.",
            )
        case "content_filter":
            return _end_incomplete(
                context, calls, "refusal", "The model, or its provider, refused to answer this."
            )
        case "error" if not calls:
            raise ModelError("The model ended its answer with an error. Prompting again may help.")
        case _ if calls:
            return None
        case _:
            if not sendable(answer.parts):
                context.host.note("The model's answer was empty.")
            return "end_turn"


def _end_incomplete(context: AgentContext, calls: Sequence[ToolCallPart], stop: Stop, sentence: str) -> Stop:
    """End on an incomplete answer. Its calls may be incomplete too, so they are not run."""
    context.host.note(sentence)
    for call in calls:
        context.history.add_result(call, Result(text=f"Not run. {sentence}", failed=True, ended="failed"))
    return stop


_ENDINGS: dict[str, Ending] = {
    "done": "done",
    "denied": "failed",
    "failed": "failed",
    "cancelled": "cancelled",
}
MOST_CALLS = 128
"""Tool calls run per answer. Bounds a confused model that asks for thousands, each with a request and maybe
an approval."""
_DETAIL_MAX = 200  # characters; an activity's detail is one line, not a whole output


async def run_calls(context: AgentContext, calls: Sequence[ToolCallPart], step: Activity) -> None:
    """Run the calls concurrently; each result is added as it arrives."""
    for call in calls[MOST_CALLS:]:
        context.history.add_result(
            call, _failed(f"Not run: one answer may make {MOST_CALLS} calls, not {len(calls)}.")
        )
    async with anyio.create_task_group() as group:
        for call in calls[:MOST_CALLS]:
            group.start_soon(run_call, context, call, step)


async def run_call(context: AgentContext, call: ToolCallPart, step: Activity) -> None:
    tool = context.tools.get(call.tool_name)
    shown = _display(call, tool)
    context.host.call_started(call.tool_call_id, call.tool_name, shown, call.args_as_dict())
    result: Result | None = None
    try:
        with step.begin("call", shown.title, call.tool_call_id) as activity:
            result = await _run_tool(context, call, tool, activity)
            activity.ending = _ENDINGS[result.ended]
            activity.detail = "" if result.ended == "done" else result.text.strip()[:_DETAIL_MAX]
    finally:
        _add_result(context, call, result or _failed(f"Cancelled: {context.budget.why}", "cancelled"))


def _add_result(context: AgentContext, call: ToolCallPart, result: Result) -> None:
    context.history.add_result(call, result)
    context.host.call_ended(call.tool_call_id, result)


async def _run_tool(
    context: AgentContext, call: ToolCallPart, tool: Tool | None, activity: Activity
) -> Result:
    if tool is None:
        return _failed(f"There is no tool {call.tool_name!r}. There are: {', '.join(sorted(context.tools))}.")
    if (sent := malformed(call)) is not None:
        return _failed(f"Nothing was run, because the input is not a JSON object: {sent[:500]}")
    try:
        return await tool.run(
            call.args_as_dict(), RunningCall(id=call.tool_call_id, activity=activity, host=context.host)
        )
    except Exception as error:
        return _failed(f"{call.tool_name} failed: {_sentence(error)}")


def _display(call: ToolCallPart, tool: Tool | None) -> CallDisplay:
    """How to display the call; by the tool's name if its input is not understood."""
    if tool is not None and malformed(call) is None:
        try:
            return tool.shown(call.args_as_dict())
        except Exception:
            pass
    return CallDisplay(title=call.tool_name)


def _sentence(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _sentence(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return str(error) or type(error).__name__


def _failed(sentence: str, ended: Literal["failed", "cancelled"] = "failed") -> Result:
    return Result(text=sentence, failed=True, ended=ended)
