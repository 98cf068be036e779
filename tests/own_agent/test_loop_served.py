"""The loop over real HTTP, with every provider's dialect: none of them is ever sent a conversation it would refuse."""

import random
from collections.abc import Sequence
from time import monotonic

import anyio
import pytest
from pydantic_ai.messages import BinaryContent
from tests.support.loop_fakes import BlockingTool, RecordingHost, check_messages, host_of, quick_tool
from tests.support.model_providers import CLAUDE, EACH, GEMINI, LOCAL, OLLAMA, ModelClients, model_clients
from tests.support.model_server.script import Call, Turn, script

from handrail.own_agent.activity import Activity, operation
from handrail.own_agent.budget import Budget, Stop
from handrail.own_agent.history import History
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.tools.agent_tool import Tool
from handrail.own_agent.tools.subagent import with_dispatch

pytestmark = pytest.mark.anyio
AT_ONCE = 0.5
"""Seconds from a cancel until the server sees its listener gone, on a busy machine."""


async def context(talk: ModelClients, name: str, *tools: Tool) -> AgentContext:
    return AgentContext(
        model=await talk.models.model(name),
        tools={tool.definition.name: tool for tool in tools},
        history=History(),
        host=RecordingHost(),
        budget=Budget(steps=20),
        instructions="Be good.",
    )


class Operation:
    """One prompt, from its beginning to its end."""

    root: Activity
    stop: Stop = "cancelled"

    async def run(self, it: AgentContext, prompt: str) -> None:
        it.history.add_prompt(prompt)
        with operation("A prompt", host_of(it).activity) as self.root:
            self.stop = await run_loop(with_dispatch(it), self.root)
        check_messages(it.history.messages)
        host_of(it).check()


async def prompted(it: AgentContext, prompt: str) -> Stop:
    run = Operation()
    with anyio.fail_after(20):
        await run.run(it, prompt)
    return run.stop


def broken(name: str) -> str:
    """An input that is none, in the dialects where that can be."""
    return "{}" if name == GEMINI else '{"a": '


async def goes_on(talk: ModelClients, it: AgentContext) -> None:
    """The next prompt simply works."""
    it.host = RecordingHost()
    assert await prompted(it, script(Turn("Here I am."))) == "end_turn"
    assert host_of(it).said == "Here I am."
    assert talk.server.refused == []


@pytest.mark.parametrize("name", EACH)
async def test_several_steps_with_calls_at_once_come_to_their_end(name: str) -> None:
    async with model_clients() as talk:
        it = await context(talk, name, quick_tool("look", "a tree"))
        prompt = script(
            Turn("Let me see.", think="Hm.", calls=(Call("look"), Call("look"), Call("fly"))),
            Turn("", "look", broken(name)),
            Turn("That is all there is."),
        )
        assert await prompted(it, prompt) == "end_turn"
        assert host_of(it).said == "Let me see.That is all there is."
        told = [result.text.split(":")[0] for result in host_of(it).ended.values()]
        wrong = "a tree" if name == GEMINI else "Nothing was run, because the input is not a JSON object"
        assert sorted(told) == sorted(["There is no tool 'fly'. There are", "a tree", "a tree", wrong])
        await goes_on(talk, it)


@pytest.mark.parametrize("name", EACH)
async def test_a_cancel_during_the_stream_closes_it_at_once_and_the_next_prompt_works(name: str) -> None:
    async with model_clients() as talk:
        it, run = await context(talk, name, quick_tool("look")), Operation()
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it, script(Turn("I was about to say", hang=True)))
            await talk.server.until(lambda: talk.server.silent.is_set() and host_of(it).said.endswith("say"))
            with anyio.fail_after(AT_ONCE):
                run.root.scope.cancel()
                await talk.server.until(talk.server.left.is_set)
        assert run.stop == "cancelled"
        assert await talk.server.endings() == ["left"]
        await goes_on(talk, it)
        sent = str(talk.server.asked[-1].body)
        assert "I was about to say" in sent
        assert "is incomplete" in sent


@pytest.mark.parametrize("name", EACH)
async def test_a_cancel_before_the_first_word_leaves_prompts_in_a_row_that_every_provider_takes(
    name: str,
) -> None:
    async with model_clients() as talk:
        it = await context(talk, name, quick_tool("look"))
        for attempt in range(3):
            run = Operation()
            async with anyio.create_task_group() as group:
                group.start_soon(
                    run.run, it, script(Turn("Never.", hold="ever"), prompt=f"Attempt {attempt}.")
                )
                await talk.server.until(lambda count=attempt: len(talk.server.asked) == count + 1)
                run.root.scope.cancel()
            assert run.stop == "cancelled"
        await goes_on(talk, it)


@pytest.mark.parametrize("name", EACH)
async def test_a_cancel_during_the_calls_leaves_a_result_for_each(name: str) -> None:
    gate = BlockingTool("slow")
    async with model_clients() as talk:
        it, run = await context(talk, name, gate.tool, quick_tool("look")), Operation()
        async with anyio.create_task_group() as group:
            group.start_soon(run.run, it, script(Turn("", calls=(Call("slow"), Call("look")))))
            with anyio.fail_after(10):
                await gate.reached.wait()
                await anyio.wait_all_tasks_blocked()
            run.root.scope.cancel()
        assert [result.ended for result in host_of(it).ended.values()].count("cancelled") == 1
        await goes_on(talk, it)


async def test_a_conversation_goes_from_one_provider_to_the_next() -> None:
    async with model_clients() as talk:
        it = await context(talk, CLAUDE, quick_tool("look"))
        for name in [*EACH, *EACH]:
            it.model = await talk.models.model(name)
            it.host = RecordingHost()
            prompt = script(Turn("Looking.", "look", think="Hm."), Turn("Seen."), prompt=f"Now {name}.")
            assert await prompted(it, prompt) == "end_turn"
        assert talk.server.refused == []


@pytest.mark.parametrize("name", [CLAUDE, LOCAL])
async def test_sub_agents_are_asked_by_their_own_scripts_three_levels_deep(name: str) -> None:
    task = script(Turn("The bottom."), prompt="Level 3.")
    for level in (2, 1):
        task = script(
            Turn("Deeper.", "dispatch", {"title": f"Level {level + 1}", "task": task}),
            Turn(f"Back at {level}."),
            prompt=f"Level {level}.",
        )
    async with model_clients() as talk:
        it = await context(talk, name, quick_tool("look"))
        prompt = script(Turn("Deeper.", "dispatch", {"title": "Level 1", "task": task}), Turn("Done."))
        assert await prompted(it, prompt) == "end_turn"
        assert [result.text for result in host_of(it).ended.values()] == [
            "The bottom.",
            "Back at 2.",
            "Back at 1.",
        ]
        await goes_on(talk, it)


@pytest.mark.parametrize("name", [CLAUDE, LOCAL, OLLAMA])
async def test_a_conversation_that_does_not_fit_is_summed_up_and_asked_again(name: str) -> None:
    async with model_clients() as talk:
        it = await context(talk, name, quick_tool("look", "word " * 400))
        talk.server.play(
            *(Turn(f"Step {step}.", "look") for step in range(3)),
            Turn("The summary.", trouble=("too_long",)),
            Turn("Done."),
        )
        assert await prompted(it, "Look around") == "end_turn"
        assert "Summed up the conversation" in str(host_of(it).notes)
        sent = str(talk.server.asked[-1].body)
        assert "The summary." in sent
        assert "Look around" in sent
        assert "Step 0." not in sent
        await goes_on(talk, it)


@pytest.mark.parametrize("name", EACH)
async def test_pictures_in_results_reach_a_model(name: str) -> None:
    picture = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    async with model_clients() as talk:
        it = await context(talk, name, quick_tool("look", "A cat"))
        it.history.add_prompt(["What is this?", picture])
        assert await prompted(it, script(Turn("", "look"), Turn("A cat."))) == "end_turn"
        assert talk.server.refused == []


@pytest.mark.parametrize("stop", ["length", "refusal"])
@pytest.mark.parametrize("name", EACH)
async def test_an_answer_that_is_not_whole_is_said_to_be_and_the_next_prompt_works(
    name: str, stop: str
) -> None:
    async with model_clients() as talk:
        it = await context(talk, name, quick_tool("look"))
        prompt = script(
            Turn("I will", "look", broken(name), stop="length" if stop == "length" else "refusal")
        )
        assert await prompted(it, prompt) == ("max_tokens" if stop == "length" else "refusal")
        assert host_of(it).notes
        assert host_of(it).started == {}
        await goes_on(talk, it)


def turns() -> Sequence[Turn]:
    task = script(
        Turn("I search.", "look", pace=0.001), Turn("I have found it.", pace=0.001), prompt="Search."
    )
    return (
        Turn("First I look around.", think="Hm, well.", calls=(Call("look"),) * 3, pace=0.001),
        Turn("Then others do.", "dispatch", {"title": "Search", "task": task}, pace=0.001),
        Turn("And I look again.", "look", pace=0.001),
        Turn("This is the end of it.", pace=0.001),
    )


@pytest.mark.parametrize("name", EACH)
async def test_a_cancel_at_random_moments_never_leaves_what_a_provider_refuses(name: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with model_clients() as talk:
        whole = monotonic()
        assert await prompted(await context(talk, name, quick_tool("look")), script(*turns())) == "end_turn"
        whole = monotonic() - whole
        it = await context(talk, name, quick_tool("look"))
        for _ in range(12):
            run, it.host, it.budget = Operation(), RecordingHost(), Budget(steps=20)
            async with anyio.create_task_group() as group:
                group.start_soon(run.run, it, script(*turns()))
                await anyio.sleep(chance.uniform(0, whole))
                under_way = [*run.root.open]
                chance.choice(under_way).scope.cancel()
            assert talk.server.refused == []
        await goes_on(talk, it)
