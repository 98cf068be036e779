"""The loop: prompt, model, calls, model … until there is nothing left to do.

Owns the order of things and why an operation ends. Everything that takes time has a scope in the activity's tree, so
cancelling is nobody's business here: what was cut short has left the conversation valid by itself. It does not know any
provider, any tool, or how it is heard.

One call of a tool that the model wants: run, and joined to the conversation with its result.
"""

from collections.abc import Sequence
from typing import Literal, cast

import anyio
from pydantic_ai.messages import ModelResponse, ToolCallPart

from handrail.own_agent.activity import Activity, Ending
from handrail.own_agent.budget import Stop
from handrail.own_agent.compaction import compact, is_full
from handrail.own_agent.history import malformed, sendable
from handrail.own_agent.model_request import Mind, ask
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.tools.agent_tool import Result, Running, Shown, Tool

__all__ = ["Mind", "Stop", "think"]


async def think(mind: Mind, activity: Activity) -> Stop:
    """Work on the prompt that the history ends with, until it is answered. Raises ModelError.

    Where the activity itself is cancelled, so is this: whoever holds it says `cancelled`.
    """
    with mind.budget.clock():
        while mind.budget.over() is None:
            stop = await _step(mind, activity)
            if stop is not None:
                activity.ending = "cancelled" if stop == "cancelled" else "done"
                return stop
    return _over(mind)


def _over(mind: Mind) -> Stop:
    over = mind.budget.over()
    assert over is not None, "the loop ends by itself, or by its budget"
    mind.voice.note(over.sentence)
    return over.stop


async def _step(mind: Mind, activity: Activity) -> Stop | None:
    """The model, asked once, and what it calls for. None where it is to be asked again."""
    stop: Stop | None = "cancelled"
    with activity.begin("step", f"Step {mind.budget.step()}") as step:
        answer = await _answer(mind, step)
        if answer is None:
            step.ending = "cancelled"
            return stop
        calls = mind.history.add_response(answer)
        stop = _stop(mind, answer, calls)
        if stop is None:
            await settle_all(mind, calls, step)
    return stop


async def _answer(mind: Mind, step: Activity) -> ModelResponse | None:
    if is_full(mind):
        await compact(mind, step)
    try:
        return await ask(mind, step)
    except ModelError as error:
        if not error.too_long or not await compact(mind, step):
            raise
    return await ask(mind, step)


def _stop(mind: Mind, answer: ModelResponse, calls: Sequence[ToolCallPart]) -> Stop | None:
    match answer.finish_reason:
        case "length":
            return _cut(
                mind,
                calls,
                "max_tokens",
                "The answer is cut off: it reached the longest that the model writes.",
            )
        case "content_filter":
            return _cut(mind, calls, "refusal", "The model, or its provider, refused to answer this.")
        case "error" if not calls:
            raise ModelError("The model ended its answer with an error. Prompting again may help.")
        case _ if calls:
            return None
        case _:
            if not sendable(answer.parts):
                mind.voice.note("The model's answer was empty.")
            return "end_turn"


def _cut(mind: Mind, calls: Sequence[ToolCallPart], stop: Stop, sentence: str) -> Stop:
    """An answer that is not whole: what it calls for may not be what was meant, and is not done."""
    mind.voice.note(sentence)
    for call in calls:
        mind.history.add_result(call, Result(text=f"Not run. {sentence}", failed=True, ended="failed"))
    return stop


_ENDINGS: dict[str, Ending] = {
    "done": "done",
    "denied": "failed",
    "failed": "failed",
    "cancelled": "cancelled",
}
MOST_CALLS = 128
"""Of one answer that are made; a model that lost its way may want thousands, each a request and perhaps a question."""
_LONGEST_DETAIL = 200  # characters; an activity's end is a line, not an output


async def settle_all(mind: Mind, calls: Sequence[ToolCallPart], step: Activity) -> None:
    """All at once; each result is joined as it comes."""
    for call in calls[MOST_CALLS:]:
        mind.history.add_result(
            call, _failed(f"Not run: one answer may make {MOST_CALLS} calls, not {len(calls)}.")
        )
    async with anyio.create_task_group() as group:
        for call in calls[:MOST_CALLS]:
            group.start_soon(settle, mind, call, step)


async def settle(mind: Mind, call: ToolCallPart, step: Activity) -> None:
    tool = mind.tools.get(call.tool_name)
    shown = _shown(call, tool)
    mind.voice.call_started(call.tool_call_id, call.tool_name, shown, call.args_as_dict())
    result: Result | None = None
    try:
        with step.begin("call", shown.title, call.tool_call_id) as activity:
            result = await _result(mind, call, tool, activity)
            activity.ending = _ENDINGS[result.ended]
            activity.detail = "" if result.ended == "done" else result.text.strip()[:_LONGEST_DETAIL]
    finally:
        _join(mind, call, result or _failed(f"Cancelled: {mind.budget.why}", "cancelled"))


def _join(mind: Mind, call: ToolCallPart, result: Result) -> None:
    mind.history.add_result(call, result)
    mind.voice.call_ended(call.tool_call_id, result)


async def _result(mind: Mind, call: ToolCallPart, tool: Tool | None, activity: Activity) -> Result:
    if tool is None:
        return _failed(f"There is no tool {call.tool_name!r}. There are: {', '.join(sorted(mind.tools))}.")
    if (sent := malformed(call)) is not None:
        return _failed(f"Nothing was run, because the input is not a JSON object: {sent[:500]}")
    try:
        return await tool.run(
            call.args_as_dict(), Running(id=call.tool_call_id, activity=activity, voice=mind.voice)
        )
    except Exception as error:
        return _failed(f"{call.tool_name} failed: {_sentence(error)}")


def _shown(call: ToolCallPart, tool: Tool | None) -> Shown:
    """A tool shows what it was made for; an input that it does not understand is shown by the tool's name."""
    if tool is not None and malformed(call) is None:
        try:
            return tool.shown(call.args_as_dict())
        except Exception:
            pass
    return Shown(title=call.tool_name)


def _sentence(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _sentence(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return str(error) or type(error).__name__


def _failed(sentence: str, ended: Literal["failed", "cancelled"] = "failed") -> Result:
    return Result(text=sentence, failed=True, ended=ended)
