"""The loop, with twins that stand still where the test wants them to."""

from typing import Any

import anyio
import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)
from tests.support.loop_fakes import (
    BlockingTool,
    FunctionTool,
    answer,
    call,
    check_messages,
    host_of,
    make_context,
    model_of,
    open_activity,
    quick_tool,
)

from handrail.own_agent.activity import Activity, operation
from handrail.own_agent.budget import Budget, Stop
from handrail.own_agent.history import is_note
from handrail.own_agent.loop import MOST_CALLS, run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import ModelError, StreamListener
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, Result, RunningCall

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def ran(context: AgentContext) -> Stop:
    """An operation from its beginning to its end."""
    stop: Stop = "cancelled"
    with anyio.fail_after(5), operation("A prompt", host_of(context).activity) as root:
        stop = await run_loop(context, root)
    settled(context)
    return stop


def settled(context: AgentContext) -> None:
    check_messages(context.history.messages)
    host_of(context).check()


def results(context: AgentContext) -> dict[str, Any]:
    return {
        part.tool_call_id: part.content
        for message in context.history.messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }


def notes(context: AgentContext) -> list[str]:
    """What the model was told by us."""
    return [
        str(part.content)
        for message in context.history.messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart) and is_note(part)
    ]


class Operation:
    """An operation under way, for a test that cancels some of it."""

    root: Activity
    stop: Stop = "cancelled"

    async def run(self, context: AgentContext) -> None:
        with operation("A prompt", host_of(context).activity) as self.root:
            self.stop = await run_loop(context, self.root)


async def stalled(messages: object, listener: StreamListener) -> ModelResponse:
    listener.text("I was just ")
    listener.text("about to")
    await anyio.sleep_forever()
    raise AssertionError


async def test_an_answer_without_calls_ends_the_operation() -> None:
    it = make_context([answer("Hello there.", finish="stop")])
    assert await ran(it) == "end_turn"
    assert host_of(it).said.split() == ["Hello", "there."]
    assert [told.sort for told in host_of(it).told if told.how is None] == ["operation", "step", "model"]
    assert host_of(it).told[3].detail == "10 tokens read, 0 written"


async def test_calls_are_run_and_their_results_are_what_the_model_is_asked_with_next() -> None:
    it = make_context([answer("Let me see.", call("look")), answer("I see.")], [quick_tool("look", "a tree")])
    assert await ran(it) == "end_turn"
    assert results(it) == {"look_1": "a tree"}
    (result,) = model_of(it).asked[1][-1].parts
    assert isinstance(result, ToolReturnPart)
    assert result.content == "a tree"
    assert host_of(it).ended["look_1"].text == "a tree"


async def test_the_calls_of_one_step_run_at_the_same_time_and_the_model_waits_for_all() -> None:
    first, second = BlockingTool("first"), BlockingTool("second")
    it = make_context([answer(call("first"), call("second")), answer("Done.")], [first.tool, second.tool])
    async with anyio.create_task_group() as group:
        group.start_soon(ran, it)
        with anyio.fail_after(5):
            await first.reached.wait()
            await second.reached.wait()
            second.let.set()
            await anyio.wait_all_tasks_blocked()
        assert results(it)["second_1"] == "second is done"
        check_messages(it.history.messages)
        assert len(model_of(it).asked) == 1
        first.let.set()
    assert len(model_of(it).asked) == 2
    assert list(results(it)) == ["first_1", "second_1"]


async def test_a_denial_is_a_result_with_its_reason() -> None:
    async def deny(input: Json, call: RunningCall) -> Result:
        return Result(text="Denied: not on a Sunday.", failed=True, ended="denied")

    it = make_context(
        [answer(call("rm"), call("ls")), answer("I see.")], [FunctionTool("rm", deny), quick_tool("ls")]
    )
    assert await ran(it) == "end_turn"
    assert results(it) == {"rm_1": "Denied: not on a Sunday.", "ls_1": "well"}
    assert sorted(filter(None, host_of(it).ends("call"))) == ["done", "failed"]


async def test_a_tool_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    it = make_context([answer(call("fly")), answer("Then I walk.")], [quick_tool("walk")])
    assert await ran(it) == "end_turn"
    assert results(it) == {"fly_1": "There is no tool 'fly'. There are: walk."}


async def test_an_input_that_is_no_object_is_answered_and_nothing_is_run() -> None:
    async def run(input: Json, call: RunningCall) -> str:
        raise AssertionError

    it = make_context([answer(call("run", args='{"a": ')), answer("Sorry.")], [FunctionTool("run", run)])
    assert await ran(it) == "end_turn"
    assert "not a JSON object" in results(it)["run_1"]


async def test_a_tool_that_raises_fails_alone() -> None:
    async def fail() -> None:
        raise OSError("no space left")

    async def burst(input: Json, call: RunningCall) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
        return "well"

    it = make_context(
        [answer(call("burst"), call("look")), answer("Oh.")],
        [FunctionTool("burst", burst), quick_tool("look")],
    )
    assert await ran(it) == "end_turn"
    assert results(it) == {"burst_1": "burst failed: no space left", "look_1": "well"}


async def test_an_empty_answer_is_said_to_be_empty() -> None:
    it = make_context([answer(" "), answer("Now.")])
    assert await ran(it) == "end_turn"
    assert host_of(it).notes == ["The model's answer was empty."]
    it.history.add_prompt("Well?")
    assert await ran(it) == "end_turn"


async def test_an_answer_that_ends_with_an_error_is_one() -> None:
    it = make_context([answer("I", finish="error"), answer("Now.")])
    with pytest.raises(ModelError, match="ended its answer with an error"):
        await ran(it)
    it.history.add_prompt("Well?")
    assert await ran(it) == "end_turn"


async def test_a_tool_that_cannot_show_its_input_is_shown_by_its_name() -> None:
    class Shy(FunctionTool):
        def shown(self, input: Json) -> CallDisplay:
            return CallDisplay(title=input["path"])

    it = make_context([answer(call("look")), answer("Yes.")], [Shy("look", quick_tool("look").do)])
    assert await ran(it) == "end_turn"
    assert host_of(it).started["look_1"].title == "look"


async def test_thinking_is_an_activity_below_the_model_that_ends_before_the_words() -> None:
    it = make_context([answer(ThinkingPart("Hm."), "So.")])
    await ran(it)
    sorts = [(told.sort, told.how) for told in host_of(it).told]
    assert sorts[2:6] == [("model", None), ("thinking", None), ("thinking", "done"), ("model", "done")]


async def test_a_cancelled_call_has_a_result_and_the_operation_goes_on() -> None:
    gate = BlockingTool("slow")
    it, run = (
        make_context(
            [answer(call("slow"), call("look")), answer("Never mind.")], [gate.tool, quick_tool("look")]
        ),
        Operation(),
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await gate.reached.wait()
            await anyio.wait_all_tasks_blocked()
            assert run.root.cancel(open_activity(run.root, "call").id)
    assert run.stop == "end_turn"
    assert results(it) == {"slow_1": "Cancelled: the person cancelled it.", "look_1": "well"}
    assert sorted(filter(None, host_of(it).ends("call"))) == ["cancelled", "done"]
    assert host_of(it).ended["slow_1"].ended == "cancelled"
    settled(it)


async def test_a_step_cancelled_during_its_calls_cancels_them_and_the_operation_goes_on() -> None:
    one, two = BlockingTool("one"), BlockingTool("two")
    it, run = (
        make_context([answer(call("one"), call("two")), answer("Well.")], [one.tool, two.tool]),
        Operation(),
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await one.reached.wait()
            await two.reached.wait()
            open_activity(run.root, "step").scope.cancel()
    assert run.stop == "end_turn"
    assert host_of(it).ends("call") == ["cancelled", "cancelled"]
    assert host_of(it).ends("step") == ["cancelled", "done"]
    settled(it)


@pytest.mark.parametrize("sort", ["model", "step", "operation"])
async def test_a_cancel_during_the_model_keeps_its_words_marks_them_and_ends_the_operation(sort: str) -> None:
    it, run = make_context([stalled, answer("As I said.")]), Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await anyio.wait_all_tasks_blocked()
            open_activity(run.root, sort).scope.cancel()
    assert run.stop == "cancelled"
    assert host_of(it).ends("operation") == ["cancelled"]
    assert host_of(it).ends("model") == ["cancelled"]
    assert it.history.messages[1].parts == [TextPart("I was just about to")]
    assert "incomplete: the person cancelled it" in notes(it)[0]
    settled(it)
    it.history.add_prompt("Go on")
    assert await ran(it) == "end_turn"


async def test_a_cancel_of_the_thinking_is_a_cancel_of_its_request() -> None:
    async def pondering(messages: object, listener: StreamListener) -> ModelResponse:
        listener.thought("Hm, ")
        await anyio.sleep_forever()
        raise AssertionError

    it, run = make_context([pondering]), Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await anyio.wait_all_tasks_blocked()
            assert run.root.cancel(host_of(it).open("thinking")[0])
    assert run.stop == "cancelled"
    assert host_of(it).ends("thinking") == ["cancelled"]
    assert "No answer was given here" in notes(it)[0]
    settled(it)


async def test_an_operation_cancelled_during_its_calls_leaves_a_result_for_each() -> None:
    slow = BlockingTool("slow")
    it, run = (
        make_context([answer(call("slow"), call("look")), answer("Ready.")], [slow.tool, quick_tool("look")]),
        Operation(),
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await slow.reached.wait()
            await anyio.wait_all_tasks_blocked()
            run.root.scope.cancel()
    assert run.stop == "cancelled"
    assert results(it) == {"slow_1": "Cancelled: the person cancelled it.", "look_1": "well"}
    settled(it)
    it.history.add_prompt("And now?")
    assert await ran(it) == "end_turn"


@pytest.mark.parametrize(
    ("finish", "stop", "word"),
    [("length", "max_tokens", "cut off"), ("content_filter", "refusal", "refused")],
)
async def test_an_answer_that_is_not_whole_ends_the_operation_and_its_calls_are_not_run(
    finish: str, stop: Stop, word: str
) -> None:
    it = make_context([answer("I will", call("look"), finish=finish)], [quick_tool("look")])
    assert await ran(it) == stop
    assert word in host_of(it).notes[0]
    assert results(it)["look_1"].startswith("Not run.")
    assert host_of(it).started == {}


@pytest.mark.parametrize(
    ("steps", "tokens", "stop", "word"),
    [(2, 0, "max_turn_requests", "after 2 steps"), (9, 15, "max_tokens", "20 tokens of the 15")],
)
async def test_a_budget_ends_the_operation_with_a_sentence(
    steps: int, tokens: int, stop: Stop, word: str
) -> None:
    budget = Budget(steps=steps, tokens=tokens)
    it = make_context([answer(call("look", f"c{n}")) for n in range(9)], [quick_tool("look")], budget=budget)
    assert await ran(it) == stop
    assert word in host_of(it).notes[0]
    assert len(model_of(it).asked) == 2


@pytest.mark.parametrize("during", ["model", "call"])
async def test_the_time_ends_the_operation_wherever_it_is(during: str) -> None:
    turns = [stalled] if during == "model" else [answer(call("slow"))]
    it = make_context(turns, [BlockingTool("slow").tool], budget=Budget(seconds=0.05))
    assert await ran(it) == "max_turn_requests"
    assert "time" in host_of(it).notes[0]
    assert "the time for it was over" in str([*results(it).values(), *notes(it)])


async def test_an_error_of_the_model_is_raised_and_what_it_said_is_kept() -> None:
    async def broken(messages: object, listener: StreamListener) -> ModelResponse:
        listener.text("Once upon a ti")
        raise ModelError("The line broke.")

    it = make_context([broken, ModelError("No key.", login=True), answer("Again.")])
    with pytest.raises(ModelError):
        await ran(it)
    assert "The line broke" in notes(it)[0]
    assert host_of(it).ends("model") == ["failed"]
    assert host_of(it).told[-3].detail == "The line broke."
    it.history.add_prompt("Again?")
    with pytest.raises(ModelError):
        await ran(it)
    assert len(notes(it)) == 1
    it.history.add_prompt("Again!")
    assert await ran(it) == "end_turn"


async def test_what_was_heard_before_another_try_is_void() -> None:
    async def twice(messages: object, listener: StreamListener) -> ModelResponse:
        listener.text("Once")
        listener.again("The server is overloaded.", 2.0)
        listener.text("Twice")
        await anyio.sleep_forever()
        raise AssertionError

    it, run = make_context([twice]), Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await anyio.wait_all_tasks_blocked()
            run.root.scope.cancel()
    assert it.history.messages[1].parts == [TextPart("Twice")]
    assert host_of(it).notes == [
        "The server is overloaded. Asking again in 2 s. What was said of this answer does not count."
    ]


async def test_the_instructions_go_with_the_last_request_and_stay_out_of_the_history() -> None:
    it = make_context([answer("Yes.")])
    it.instructions = "Be brief."
    await ran(it)
    asked: ModelMessage = model_of(it).asked[0][-1]
    assert isinstance(asked, ModelRequest)
    assert asked.instructions == "Be brief."
    assert "Be brief" not in str(it.history.facts)


async def test_of_an_answer_that_calls_without_end_only_so_much_is_done() -> None:
    many = [call("look", f"l{n}") for n in range(MOST_CALLS + 2)]
    it = make_context([answer(*many), answer("So.")], [quick_tool("look")])
    assert await ran(it) == "end_turn"
    assert len(host_of(it).started) == MOST_CALLS
    assert (
        results(it)[f"l{MOST_CALLS}"]
        == f"Not run: one answer may make {MOST_CALLS} calls, not {MOST_CALLS + 2}."
    )
