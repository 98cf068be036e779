"""Summing up a conversation: when, what stays, and that nothing is lost where it does not come to its end."""

from typing import Any

import anyio
import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
from tests.support.loop_fakes import (
    Turn,
    answer,
    call,
    check_messages,
    host_of,
    make_context,
    model_of,
    quick_tool,
    stream_answer,
)

from handrail.own_agent.activity import ActivityUpdate, operation
from handrail.own_agent.compaction import compact, is_full
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import ModelError, StreamListener
from handrail.own_agent.tools.agent_tool import Result

pytestmark = pytest.mark.anyio

LONG = "word " * 400  # some 500 tokens


def worked(turns: list[Any], steps: int = 4, window: int | None = 2000) -> AgentContext:
    """A mind in the middle of its work, most of the context used."""
    it = make_context(turns, [quick_tool("look")], prompt="Find the treasure", window=window)
    for step in range(steps):
        last = step == steps - 1
        (one,) = it.history.add_response(
            answer(f"Step {step}.", call("look", f"c{step}"), tokens=1700 if last and window else 0)
        )
        it.history.add_result(one, Result(text=f"{LONG}{step}"))
    return it


async def ran(it: AgentContext) -> str:
    with anyio.fail_after(5), operation("A prompt", host_of(it).activity) as root:
        return await run_loop(it, root)
    return "cancelled"


def prompts(it: AgentContext) -> list[str]:
    return [
        str(part.content)
        for message in it.history.messages
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


async def test_a_conversation_near_its_limit_is_summed_up_before_the_next_request() -> None:
    it = worked([answer("We look for a treasure; three places are empty."), answer("Found it.")])
    assert is_full(it)
    assert await ran(it) == "end_turn"
    check_messages(it.history.messages)
    told = str(model_of(it).asked[1])
    assert "three places are empty" in told
    assert "Find the treasure" in told
    assert "Step 3." in told
    assert "Step 0." not in told
    assert len(model_of(it).asked[1]) == 3
    assert "Found it." in host_of(it).said
    assert "three places" not in host_of(it).said


async def test_it_says_what_it_did_and_is_an_activity_with_a_request_below_it() -> None:
    it = worked([answer("Summary."), answer("Found it.")])
    await ran(it)
    (note,) = host_of(it).notes
    assert "2,200 →" in note
    assert "the prompt and the last answer and its results" in note
    sorts: list[tuple[str, str | None]] = [
        (told.sort, told.parent) for told in host_of(it).told if told.how is None
    ]
    assert [sort for sort, _ in sorts] == ["operation", "step", "compaction", "model", "model"]
    assert host_of(it).usages[0][0] < 1000


async def test_the_model_is_asked_for_a_summary_of_what_is_old_with_its_tools_at_hand() -> None:
    it = worked([answer("Summary."), answer("Found it.")])
    await ran(it)
    asked = model_of(it).asked[0]
    assert "Write that summary now" in str(asked[-1])
    assert model_of(it).offered == [["look"], ["look"]]


async def test_one_that_fits_is_left_alone() -> None:
    it = worked([answer("Found it.")], window=1_000_000)
    assert await ran(it) == "end_turn"
    assert host_of(it).notes == []


async def test_where_nobody_knows_how_much_fits_it_is_summed_up_once_it_does_not() -> None:
    it = worked(
        [ModelError("Too long.", too_long=True), answer("Summary."), answer("Found it.")], window=None
    )
    assert await ran(it) == "end_turn"
    check_messages(it.history.messages)
    assert "Summary." in prompts(it)[0]
    assert host_of(it).ends("model") == ["failed", "done", "done"]


async def test_a_conversation_that_is_too_long_even_so_is_an_error() -> None:
    turns = [
        ModelError("Too long.", too_long=True),
        answer("Summary."),
        ModelError("Too long.", too_long=True),
    ]
    it = worked(turns, window=None)
    with pytest.raises(ModelError):
        await ran(it)
    check_messages(it.history.messages)


async def test_what_is_too_long_to_be_summed_up_is_summed_up_with_its_results_clipped() -> None:
    it = worked([ModelError("Too long.", too_long=True), answer("Summary."), answer("Found it.")])
    assert await ran(it) == "end_turn"
    first, second = model_of(it).asked[:2]
    assert len(str(second)) < len(str(first))
    assert "Step 0." in str(second)
    assert "Summary." in prompts(it)[0]


@pytest.mark.parametrize("summary", [ModelError("Overloaded."), answer(call("look", "c9")), answer("")])
async def test_where_there_is_no_summary_it_goes_on_as_it_was(summary: ModelError | ModelResponse) -> None:
    it = worked([summary, answer("Found it.")])
    before = it.history.messages
    assert await ran(it) == "end_turn"
    assert it.history.messages[:-1] == before
    assert "could not be summed up" in host_of(it).notes[0]
    assert host_of(it).ends("compaction") == ["failed"]


@pytest.mark.parametrize("sort", ["compaction", "model"])
async def test_a_cancelled_one_changes_nothing_and_the_operation_goes_on_without_trying_again(
    sort: str,
) -> None:
    async def stalled(messages: object, listener: StreamListener) -> ModelResponse:
        await anyio.sleep_forever()
        raise AssertionError

    turns: list[Turn | ModelResponse] = [
        stalled,
        answer(call("look", "c9"), tokens=1750),
        answer("Found it."),
    ]
    it = worked(turns)
    before = it.history.messages
    async with anyio.create_task_group() as group:
        with anyio.fail_after(5), operation("A prompt", host_of(it).activity) as root:

            async def cancel() -> None:
                await anyio.wait_all_tasks_blocked()
                next(each for each in root.open if each.sort == sort).scope.cancel()

            group.start_soon(cancel)
            assert await run_loop(it, root) == "end_turn"
    assert it.history.messages[: len(before)] == before
    assert host_of(it).ends("compaction") == ["cancelled"]
    host_of(it).check()


async def test_a_person_may_have_all_of_it_summed_up_with_care_for_something() -> None:
    it = worked([answer("All in short."), answer("Well.")])
    it.history.add_response(answer("Not found."))
    with operation("/compact", host_of(it).activity) as root:
        assert await compact(it, root, "the map")
    assert "special care of this: the map" in str(model_of(it).asked[0][-1])
    (only,) = it.history.messages
    assert len(only.parts) == 1
    assert "All in short." in prompts(it)[0]
    assert "Kept as it was: nothing" in host_of(it).notes[0]
    it.history.add_prompt("And now?")
    assert await ran(it) == "end_turn"


async def test_there_is_nothing_to_sum_up_of_a_prompt_alone() -> None:
    it = make_context([])
    with operation("/compact", list[ActivityUpdate]().append) as root:
        assert not await compact(it, root, "")
        assert not await compact(it, root)


async def test_an_earlier_summary_is_summed_up_with_the_rest() -> None:
    it = worked([answer("First summary."), answer("Second summary.")], steps=6)
    with operation("/compact", host_of(it).activity) as root:
        assert await compact(it, root)
        for step in range(3):
            (one,) = it.history.add_response(answer(call("look", f"d{step}"), tokens=0))
            it.history.add_result(one, Result(text=LONG))
        assert await compact(it, root)
    assert "First summary." in str(model_of(it).asked[1])
    check_messages(it.history.messages)
    assert "First summary." not in str(it.history.messages)
    assert sum("Find the treasure" in prompt for prompt in prompts(it)) == 1


async def test_what_a_new_prompt_asks_for_stays_even_where_older_ones_go() -> None:
    async def summing(messages: Any, listener: StreamListener) -> ModelResponse:
        return await stream_answer(answer("Summary."), listener)

    it = worked([summing, answer("Two.")])
    it.history.add_response(answer("Not found.", tokens=1700))
    it.history.add_prompt("What is 1 + 1?")
    assert await ran(it) == "end_turn"
    messages = it.history.messages
    check_messages(messages)
    assert prompts(it)[-1] == "What is 1 + 1?"
    assert "Find the treasure" not in str(messages)
    assert isinstance(messages[0], ModelRequest)
    assert not any(isinstance(part, ToolReturnPart) for part in messages[0].parts)
