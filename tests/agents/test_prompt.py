"""Prompts: one at a time on each thread, in order, cancelled and awaited; over real pipes."""

from pathlib import Path

import anyio
import pytest
from tests.agents.conversation import ANN, calls, conversing, must_hold, parts, text

from handrail.store.event import MessageOpened, OperationEnded, OperationOpened

pytestmark = pytest.mark.anyio


async def test_a_prompt_is_answered_as_a_message_that_grows_until_the_agent_stops(tmp_path: Path) -> None:
    async with conversing(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(
            thread, {"think": "Hm. "}, {"say": "word {n} ", "times": 3}, {"stop": "max_tokens"}
        )
        assert scene.prompts.running(thread) == prompted.operation
        answer = await scene.answer(thread, prompted)
        assert (answer.stop, answer.agent, answer.operation) == ("max_tokens", "scripted", prompted.operation)
        assert [part.kind for part in answer.parts] == ["thought", "text"]
        assert text(answer) == "word 0 word 1 word 2 "
        said, _ = await scene.threads.messages(thread)
        assert (said.id, said.role, said.operation) == (prompted.message, "user", prompted.operation)
        assert (await scene.ended(prompted.operation or "")).stop == "max_tokens"
        assert scene.prompts.running(thread) is None
        await must_hold(scene)
