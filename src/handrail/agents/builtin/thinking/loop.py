"""The loop: prompt, model, calls, model … until there is nothing left to do.

Owns the order of things and why an operation ends. Everything that takes time has a scope in the activity's tree, so
cancelling is nobody's business here: what was cut short has left the conversation valid by itself. It does not know any
provider, any tool, or how it is heard.
"""

from collections.abc import Sequence

from pydantic_ai.messages import ModelResponse, ToolCallPart

from handrail.agents.builtin.model.model import ModelError
from handrail.agents.builtin.thinking.activity import Activity
from handrail.agents.builtin.thinking.asking import ask
from handrail.agents.builtin.thinking.budget import Stop
from handrail.agents.builtin.thinking.calling import settle_all
from handrail.agents.builtin.thinking.compaction import compact, is_full
from handrail.agents.builtin.thinking.mind import Mind
from handrail.agents.builtin.thinking.repair import sendable
from handrail.agents.builtin.tools.tool import Result

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
