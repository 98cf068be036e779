"""Steering: a message that comes while a prompt is processed reaches the model with its next request."""

from collections.abc import Sequence

import anyio
import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from tests.support.loop_fakes import (
    BlockingTool,
    answer,
    call,
    check_messages,
    host_of,
    make_context,
    model_of,
    quick_tool,
    stream_answer,
)

from handrail.own_agent.activity import operation
from handrail.own_agent.budget import Stop
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import StreamListener
from handrail.own_agent.steering import SteeringQueue

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def ran(context: AgentContext) -> Stop:
    context.steering.is_open = True
    stop: Stop = "cancelled"
    with anyio.fail_after(5), operation("A prompt", host_of(context).activity) as root:
        stop = await run_loop(context, root)
    check_messages(context.history.messages)
    return stop


def prompts(messages: Sequence[ModelMessage]) -> list[str]:
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    found = [part for request in requests for part in request.parts if isinstance(part, UserPromptPart)]
    return [
        part.content if isinstance(part.content, str) else "".join(map(str, part.content)) for part in found
    ]


async def test_a_message_during_a_tool_call_goes_with_its_result() -> None:
    tool = BlockingTool("slow")
    context = make_context([answer(call("slow")), answer("With tabs.")], [tool.tool])

    async def steer() -> None:
        await tool.reached.wait()
        assert context.steering.put(["use tabs"])
        tool.let.set()

    async with anyio.create_task_group() as group:
        group.start_soon(steer)
        assert await ran(context) == "end_turn"
    first, second = model_of(context).asked
    assert ("use tabs" in prompts(first), prompts(second)[-1]) == (False, "use tabs")
    assert context.steering.waiting == []


async def test_a_message_during_the_last_answer_is_answered_before_the_prompt_ends() -> None:
    async def speaks(_: Sequence[ModelMessage], listener: StreamListener) -> ModelResponse:
        assert context.steering.put(["and test it"])
        return await stream_answer(answer("Done."), listener)

    context = make_context([speaks, answer("Tested.")], [quick_tool("x")])
    assert await ran(context) == "end_turn"
    assert prompts(model_of(context).asked[1])[-1] == "and test it"
    assert host_of(context).said.split() == ["Done.", "Tested."]


async def test_messages_arrive_in_order_and_none_is_taken_after_the_end() -> None:
    queue = SteeringQueue()
    assert not queue.put(["before it begins"])
    queue.is_open = True
    assert all([queue.put(["one"]), queue.put(["two"])])
    assert queue.take() == [["one"], ["two"]]
    assert queue.put(["three"])
    assert queue.close() == [["three"]]
    assert not queue.put(["too late"])
