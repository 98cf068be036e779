"""One call of a tool that the model wants: run, and joined to the conversation with its result.

Owns that every call has exactly one result, whatever happens: a tool that there is not, an input that is none, a tool
that raises, a cancel at any moment. It does not know any tool.
"""

from collections.abc import Sequence
from typing import Literal, cast

import anyio
from pydantic_ai.messages import ToolCallPart

from handrail.agents.builtin.thinking.activity import Activity, Ending
from handrail.agents.builtin.thinking.history import malformed
from handrail.agents.builtin.thinking.mind import Mind
from handrail.agents.builtin.tools.tool import Result, Running, Shown, Tool

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
