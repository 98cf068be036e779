"""A session: how a prompt ends, what is set, and that cancelling is bounded whatever the agent does."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.agents.acp.test_agent import MODES, OPTIONS
from tests.support.agent_host import BOUND, RecordingHandler, agent_host, prompt
from tests.support.keeper_terminals import until
from tests.support.processes import is_alive
from tests.support.scripted_agent import Obj

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import Folder
from handrail.agents.acp.session import PromptResult
from handrail.store.events import AgentEnded
from handrail.store.values import Json


@pytest.mark.parametrize(
    "stop", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "of_tomorrow"]
)
async def test_a_prompt_ends_as_the_agent_says(home: Path, stop: str) -> None:
    usage: Json = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    async with agent_host(home) as stage:
        session = await (await stage.agent()).open(Folder(cwd="/"), RecordingHandler())

        assert await prompt(session, {"stop": stop, "usage": usage, "new": 1}) == PromptResult(stop, usage)
        assert await prompt(session, {"say": "and on"}) == PromptResult("end_turn", None)


async def test_a_prompt_is_sent_block_by_block(home: Path) -> None:
    blocks: list[Json] = [
        {"type": "text", "text": "look"},
        {"type": "resource_link", "name": "a.py", "uri": "file:///w/a.py"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "text", "text": '[{"tell_prompt": true}]'},
    ]
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        session = await (await stage.agent()).open(Folder(cwd="/"), desk)
        await session.prompt(blocks)

        assert desk.told == blocks


async def test_a_prompt_that_fails_leaves_the_session_usable(home: Path) -> None:
    async with agent_host(home) as stage:
        session = await (await stage.agent()).open(Folder(cwd="/"), RecordingHandler())
        with pytest.raises(AgentError, match="refused `session/prompt`: Rate limited") as failed:
            await prompt(session, {"stderr": "429"}, {"fail": {"code": -32603, "message": "Rate limited"}})
        assert (failed.value.code, failed.value.logins) == (-32603, ())
        assert await prompt(session, {"say": "x"}) == PromptResult("end_turn")


async def test_a_login_that_ran_out_in_mid_conversation_is_told_with_the_ways(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("shut", logins=[{"id": "web", "name": "Web"}])
        session = await (await stage.agent("shut")).open(Folder(cwd="/"), RecordingHandler())
        with pytest.raises(AgentError, match="log in") as failed:
            await prompt(session, {"fail": {"code": -32000, "message": "expired"}})
        assert [login.id for login in failed.value.logins] == ["web"]


async def test_modes_and_options_are_set_and_told(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("rich", modes=MODES, options=OPTIONS)
        desk = RecordingHandler()
        session = await (await stage.agent("rich")).open(Folder(cwd="/"), desk)
        await session.set_mode("code")
        await session.set_option("model", "large")
        await session.set_option("fast", True)

        modes: list[Any] = [it for it in desk.updates if it["sessionUpdate"] == "current_mode_update"]
        options: list[Any] = [it for it in desk.updates if it["sessionUpdate"] == "_options"]
        assert modes[-1]["currentModeId"] == "code"
        assert [option["currentValue"] for option in options[-1]["configOptions"]] == ["large", True]


async def test_models_that_are_listed_apart_are_an_option_like_any_other(home: Path) -> None:
    models = {
        "currentModelId": "a",
        "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}],
    }
    async with agent_host(home) as stage:
        stage.add("old", models=models)
        desk = RecordingHandler()
        session = await (await stage.agent("old")).open(Folder(cwd="/"), desk)
        await session.set_option("_model", "b")

        told: list[Any] = [it["configOptions"] for it in desk.updates if it["sessionUpdate"] == "_options"]
        [[before], [after]] = told
        assert (before["id"], before["currentValue"], len(before["options"])) == ("_model", "a", 2)
        assert after["currentValue"] == "b"


async def test_a_prompt_cancelled_before_it_is_sent_is_not_sent(home: Path) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        session = await (await stage.agent()).open(Folder(cwd="/"), desk)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await prompt(session, {"say": "never"})
        await prompt(session, {"tell_heard": True})

        assert desk.told.count("session/prompt") == 1
        assert "session/cancel" not in desk.told


async def test_a_cancelled_prompt_tells_the_agent_and_waits_for_its_last_words(home: Path) -> None:
    async with agent_host(home, grace=BOUND) as stage:
        agent, desk = await stage.agent(), RecordingHandler()
        session = await agent.open(Folder(cwd="/"), desk)
        async with anyio.create_task_group() as group:
            steps = [{"on_cancel": [{"sleep": 0.1}, {"say": "bye"}]}, {"say": "go"}, {"hang": True}]
            group.start_soon(prompt, session, *steps)
            await desk.until(lambda it: it.texts == ["go"])
            group.cancel_scope.cancel()

        assert desk.texts == ["go", "bye"]
        assert not agent.is_over
        assert (await prompt(session, {"say": "again"})).stop == "end_turn"


async def test_an_agent_that_waits_for_its_open_questions_when_cancelled_is_answered(home: Path) -> None:
    withdrawn = anyio.Event()

    async def answer(_: str, __: Json) -> Json:
        await withdrawn.wait()
        return {"outcome": {"outcome": "cancelled"}}

    async with agent_host(home, grace=BOUND) as stage:
        agent, desk = await stage.agent(), RecordingHandler(answer=answer)
        session = await agent.open(Folder(cwd="/"), desk)
        async with anyio.create_task_group() as group:
            steps: list[Obj] = [
                {"waits_for_answers": True},
                {"on_cancel": [{"tell": "x"}]},
                {"ask": {}, "as": "x"},
            ]
            group.start_soon(prompt, session, *steps)
            await desk.asked.wait()
            group.cancel_scope.cancel()
            withdrawn.set()  # as the calls of an operation are settled when it is cancelled

        assert desk.told == {"outcome": {"outcome": "cancelled"}}
        assert not agent.is_over


async def test_an_agent_that_ignores_its_cancel_is_ended_with_its_whole_tree_within_the_grace(
    home: Path,
) -> None:
    grace = 1.0
    child: dict[str, Any] = {"ignores_term": True}
    async with agent_host(home, grace=grace) as stage:
        agent, desk = await stage.agent(), RecordingHandler()
        session = await agent.open(Folder(cwd="/"), desk)
        pids, began = [agent.pid], 0.0
        async with anyio.create_task_group() as group:
            steps = [
                {"spawn": "a", **child},
                {"spawn": "b", "setsid": True, **child},
                {"spawn": "c", "setsid": True, "forks": True, "holds_stdout": True, **child},
                *({"tell": name} for name in "abc"),
                {"ignore_cancel": True},
                {"say": "null"},
                {"hang": True},
            ]
            group.start_soon(prompt, session, *steps)
            await desk.until(lambda it: len(it.texts) == 4)
            pids += [_pid(text) for text in desk.texts[:3]]
            assert all(map(is_alive, pids))
            began = time.monotonic()
            group.cancel_scope.cancel()
        took = time.monotonic() - began

        assert [pid for pid in pids if is_alive(pid)] == []
        assert grace <= took < grace + BOUND
        assert desk.lost_for == ["scripted did not stop within 1 s of being told to, so it was ended."]
        [ended] = await stage.facts(AgentEnded)
        assert ended.why == desk.lost_for[0]
        again = await (await stage.agent()).open(Folder(cwd="/"), RecordingHandler())
        assert (await prompt(again, {"say": "new"})).stop == "end_turn"


async def test_an_agent_that_reads_no_more_is_ended_all_the_same(home: Path) -> None:
    async with agent_host(home, grace=0.2) as stage:
        agent, desk = await stage.agent(), RecordingHandler()
        session = await agent.open(Folder(cwd="/"), desk)
        async with anyio.create_task_group() as group:
            group.start_soon(prompt, session, {"stop_reading": True}, {"say": "go"}, {"hang": True})
            await desk.until(lambda it: it.texts == ["go"])
            group.cancel_scope.cancel()

        await until(lambda: not is_alive(agent.pid))
        assert agent.is_over


async def test_two_sessions_of_one_agent_do_not_hear_each_other(home: Path) -> None:
    async with agent_host(home) as stage:
        agent, one, two = await stage.agent(), RecordingHandler(), RecordingHandler()
        first = await agent.open(Folder(cwd="/"), one)
        second = await agent.open(Folder(cwd="/"), two)
        async with anyio.create_task_group() as group:
            group.start_soon(prompt, first, {"say": "one", "times": 200, "every": 0.0001})
            group.start_soon(prompt, second, {"say": "two", "times": 200, "every": 0.0001})

        assert (set(one.texts), set(two.texts)) == ({"one"}, {"two"})
        assert (len(one.texts), len(two.texts)) == (200, 200)


def _pid(told: str) -> int:
    return int(told.partition(":")[2].strip(" }"))
