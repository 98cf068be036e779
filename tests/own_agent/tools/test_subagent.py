"""Sub-agents: their own conversation and steps, in the scope of the call that they work for."""

from decimal import Decimal
from typing import Any

import anyio
import pytest
from pydantic_ai.messages import ModelResponse
from tests.support.loop_fakes import (
    BlockingTool,
    RecordingHost,
    ScriptedModel,
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
from handrail.own_agent.budget import MOST_AGENTS, Budget
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import ModelError, StreamListener
from handrail.own_agent.tools.subagent import with_dispatch

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


def dispatch(task: str, id: str = "d", title: str = "") -> Any:
    return call("dispatch", id, {"title": title or task, "task": task})


async def stalled(messages: object, listener: StreamListener) -> ModelResponse:
    listener.text("I have seen a tr")
    await anyio.sleep_forever()
    raise AssertionError


class Operation:
    root: Activity
    stop = "cancelled"

    async def run(self, it: AgentContext) -> None:
        with operation("A prompt", host_of(it).activity) as self.root:
            self.stop = await run_loop(with_dispatch(it), self.root)
        check_messages(it.history.messages)
        host_of(it).check()


async def ran(it: AgentContext) -> str:
    run = Operation()
    with anyio.fail_after(5):
        await run.run(it)
    return run.stop


def paths(it: AgentContext) -> list[str]:
    """Each activity by the sorts above it."""
    seen: dict[str, str] = {}
    for told in host_of(it).told:
        if told.how is None:
            seen[told.id] = f"{seen[told.parent]}/{told.sort}" if told.parent else told.sort
    return list(seen.values())


async def test_a_task_is_done_in_a_conversation_of_its_own_and_its_last_answer_is_the_result() -> None:
    it = make_context(
        [
            answer("I will have it searched.", dispatch("Search the house", "d")),
            answer("I look.", call("look", "l")),
            answer("There is a tree."),
            answer("A tree it is."),
        ],
        [quick_tool("look")],
        prompt="What is there?",
    )
    it.instructions = "Be brief."
    assert await ran(it) == "end_turn"
    assert host_of(it).ended["d"].text == "There is a tree."
    assert host_of(it).heard["d"].split() == ["I", "look.", "There", "is", "a", "tree."]
    assert "There is" not in host_of(it).said
    assert host_of(it).ended["l"].text == "well"
    first = model_of(it).asked[1]
    assert len(first) == 1
    assert "Search the house" in str(first)
    assert "What is there?" not in str(first)
    assert "Be brief." in str(first)
    assert "sub-agent" in str(first)
    assert [len(asked) for asked in model_of(it).asked] == [1, 1, 3, 3]
    assert "operation/step/call/agent/step/call" in paths(it)
    assert host_of(it).usages[-1][0] == 10


async def test_three_levels_below_the_prompt_nobody_dispatches() -> None:
    it = make_context(
        [
            *(answer(dispatch(f"Level {level}", "same")) for level in (1, 2, 3)),
            answer("The bottom."),
            *(answer(f"Back at {level}.") for level in (2, 1, 0)),
        ]
    )
    assert await ran(it) == "end_turn"
    assert [("dispatch" in offered) for offered in model_of(it).offered] == [
        True,
        True,
        True,
        False,
        *[True] * 3,
    ]
    assert [result.text for result in host_of(it).ended.values()] == [
        "The bottom.",
        "Back at 2.",
        "Back at 1.",
    ]
    assert "operation" + "/step/call/agent" * 3 + "/step/model" in paths(it)


async def test_sub_agents_of_one_step_work_at_the_same_time() -> None:
    one, two = BlockingTool("one"), BlockingTool("two")

    async def by_task(messages: Any, listener: StreamListener) -> ModelResponse:
        name = "one" if "First" in str(messages) else "two"
        return answer(call(name, "same")) if len(messages) == 1 else answer(f"{name} is through.")

    it = make_context(
        [answer(dispatch("First", "a"), dispatch("Second", "b")), *[by_task] * 4, answer("Both.")],
        [one.tool, two.tool],
    )
    run = Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await one.reached.wait()
            await two.reached.wait()
            one.let.set()
            two.let.set()
    assert run.stop == "end_turn"
    assert {each: host_of(it).ended[each].text for each in "ab"} == {
        "a": "one is through.",
        "b": "two is through.",
    }


@pytest.mark.parametrize(("sort", "place"), [("agent", 0), ("step", 1), ("model", 0)])
async def test_a_cancelled_sub_agent_is_a_result_with_what_it_had_said(sort: str, place: int) -> None:
    it = make_context(
        [answer(dispatch("Search")), answer("First.", call("look", "l")), stalled, answer("A pity.")],
        [quick_tool("look")],
    )
    run = Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await anyio.wait_all_tasks_blocked()
            [each for each in run.root.open if each.sort == sort][place].scope.cancel()
    assert run.stop == "end_turn"
    result = host_of(it).ended["d"]
    assert result.ended == "cancelled"
    assert (
        result.text
        == "The sub-agent was cancelled by the person. What it had said:\n\nFirst.\n\nI have seen a tr"
    )
    assert host_of(it).ends("agent") == ["cancelled"]


async def test_a_cancelled_dispatch_call_takes_its_sub_agent_along() -> None:
    it = make_context([answer(dispatch("Search")), stalled, answer("A pity.")])
    run = Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await anyio.wait_all_tasks_blocked()
            open_activity(run.root, "call").scope.cancel()
    assert run.stop == "end_turn"
    assert host_of(it).ends("agent") == ["cancelled"]
    assert host_of(it).ended["d"].ended == "cancelled"


async def test_the_operation_takes_sub_agents_three_levels_deep_along() -> None:
    it = make_context([*(answer(dispatch(f"Level {level}")) for level in (1, 2, 3)), stalled])
    run = Operation()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it)
            await anyio.wait_all_tasks_blocked()
            run.root.scope.cancel()
    assert run.stop == "cancelled"
    assert host_of(it).ends("agent") == ["cancelled"] * 3
    assert [result.ended for result in host_of(it).ended.values()] == ["cancelled"] * 3


async def test_an_error_of_its_model_is_a_failed_result() -> None:
    it = make_context([answer(dispatch("Search")), ModelError("Overloaded."), answer("A pity.")])
    assert await ran(it) == "end_turn"
    assert host_of(it).ended["d"].text == "Overloaded. It had said nothing yet."
    assert host_of(it).ends("agent") == ["failed"]


async def test_its_steps_are_its_own_and_its_tokens_and_price_are_the_conversations() -> None:
    turns = [
        answer(dispatch("Search")),
        *(answer(call("look", f"l{step}"), tokens=100) for step in range(3)),
        answer("I stop."),
    ]
    it = make_context(turns, [quick_tool("look")], budget=Budget(steps=3))
    assert isinstance(it.model, ScriptedModel)
    it.model.price = Decimal("0.5")
    assert await ran(it) == "end_turn"
    assert "may not take more steps" in host_of(it).ended["d"].text
    assert it.budget.used == 10 + 300 + 10
    assert it.budget.taken == 2
    assert it.costs.total == Decimal("2.5")


async def test_what_it_says_is_told_in_pieces_that_are_worth_it_and_under_a_title_of_one_line() -> None:
    told = list[str]()

    class Counting(RecordingHost):
        def call_heard(self, id: str, words: str) -> None:
            told.append(words)

    it = make_context(
        [answer(dispatch("Search", title="A\n" * 1000)), answer("word " * 2_000), answer("So.")]
    )
    it.host = Counting()
    assert await ran(it) == "end_turn"
    assert len(told) < 60
    assert told[-1].endswith("word word  ")
    (title,) = {each.title for each in host_of(it).told if each.sort == "agent"}
    assert title == host_of(it).started["d"].title
    assert len(title) < 200
    assert "\n" not in title


async def test_one_prompt_has_so_many_sub_agents_and_no_more() -> None:
    many = [dispatch("Search", f"d{n}") for n in range(MOST_AGENTS + 1)]
    found = [answer("Nothing.") for _ in range(MOST_AGENTS)]
    it = make_context([answer(*many), *found, answer("So.")])
    assert await ran(it) == "end_turn"
    (refused,) = (each.text for each in host_of(it).ended.values() if each.failed)
    assert refused.startswith("No more sub-agents")


async def test_tokens_used_up_by_a_sub_agent_end_the_operation_too() -> None:
    it = make_context(
        [answer(dispatch("Search")), answer(call("look"), tokens=100)],
        [quick_tool("look")],
        budget=Budget(tokens=100),
    )
    assert await ran(it) == "max_tokens"
    assert "tokens were used up" in host_of(it).ended["d"].text


@pytest.mark.parametrize(
    "input", [{}, {"title": "Search"}, {"title": "Search", "task": " "}, {"title": 1, "task": "Go"}]
)
async def test_a_dispatch_without_a_task_is_told_what_is_missing(input: dict[str, Any]) -> None:
    it = make_context([answer(call("dispatch", "d", input)), answer("Sorry.")])
    assert await ran(it) == "end_turn"
    assert host_of(it).ended["d"].failed
