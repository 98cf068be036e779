"""A cancel at any moment of an operation with several steps, of any of its activities: what is left is valid."""

from collections import Counter
from functools import partial

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ThinkingPart
from tests.support.loop_fakes import (
    RecordingHost,
    answer,
    call,
    check_messages,
    host_of,
    make_context,
    quick_tool,
)

from handrail.own_agent.activity import Activity, operation
from handrail.own_agent.budget import Stop
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.tools.subagent import with_dispatch


def busy() -> AgentContext:
    """Four steps: three calls at once, a sub-agent that makes a call itself, a summary on the way."""
    it = make_context(
        [
            answer(ThinkingPart("Hm"), "First I look around.", *(call("look", f"a{n}") for n in range(3))),
            answer("Then I", call("dispatch", "d", {"title": "Search", "task": "Search"}), tokens=1000),
            answer("I search.", call("look", "c")),
            answer("I have found it."),
            answer("All that in short."),
            answer("And it is this.", tokens=1000),
            *(answer("The end.") for _ in range(20)),  # for whoever goes on after a cancel
        ],
        [quick_tool("look")],
        window=1000,
    )
    it.history.on_change = partial(check_all, it)
    return it


def check_all(it: AgentContext, fact: object) -> None:
    check_messages(it.history.messages)


async def operate(it: AgentContext, cancel: tuple[int, int] | None) -> tuple[Stop, int, str]:
    """Run it; where it is to be cancelled, after so many moments, the activity of that place among the open ones.

    Returns how it ended, after how many moments, and what was cancelled.
    """
    stop: Stop = "cancelled"
    moments, cancelled = 0, ""
    over = anyio.Event()

    async def watch(root: Activity) -> None:
        nonlocal moments, cancelled
        while not over.is_set():
            if cancel is not None and moments == cancel[0]:
                under_way = [*root.open]
                found = under_way[cancel[1] % len(under_way)]
                cancelled = found.sort
                root.cancel(found.id)
            moments += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        with anyio.fail_after(10), operation("A prompt", host_of(it).activity) as root:
            group.start_soon(watch, root)
            stop = await run_loop(with_dispatch(it), root)
        over.set()
    return stop, moments, cancelled


async def cancelled_at(cancel: tuple[int, int] | None) -> tuple[int, str]:
    it = busy()
    stop, moments, cancelled = await operate(it, cancel)
    check_messages(it.history.messages)
    host_of(it).check()
    assert stop in ("end_turn", "cancelled")
    assert stop == "end_turn" or cancelled, "it ended as cancelled, and nobody cancelled it"
    if cancelled == "operation":
        assert host_of(it).ends("operation") in (["cancelled"], ["done"])
    it.host = RecordingHost()
    it.history.add_prompt("Go on")
    assert (await operate(it, None))[0] == "end_turn"
    check_messages(it.history.messages)
    host_of(it).check()
    return moments, cancelled


@pytest.mark.anyio
async def test_the_whole_of_it_takes_many_moments_and_summing_up_is_among_them() -> None:
    it = busy()
    stop, moments, _ = await operate(it, None)
    assert stop == "end_turn"
    assert moments > 40
    assert host_of(it).ends("compaction") == ["done"]


@pytest.mark.anyio
async def test_a_cancel_at_each_moment_of_each_activity_leaves_a_valid_conversation() -> None:
    moments, _ = await cancelled_at(None)
    hits = Counter[str]()
    for moment in range(moments):
        for place in range(6):
            _, cancelled = await cancelled_at((moment, place))
            hits[cancelled] += 1
    for sort in ("operation", "step", "model", "thinking", "call", "agent", "compaction"):
        assert hits[sort] > 0, hits


@settings(max_examples=150)
@given(st.integers(0, 100), st.integers(0, 8), st.sampled_from(["asyncio", "trio"]))
def test_a_cancel_at_a_random_moment_leaves_a_valid_conversation(
    moment: int, place: int, backend: str
) -> None:
    anyio.run(cancelled_at, (moment, place), backend=backend)
