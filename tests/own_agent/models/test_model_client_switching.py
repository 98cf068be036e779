"""A conversation goes on with any other model, whatever the one before it left in its history."""

import pytest
from tests.support.model_providers import (
    CLAUDE,
    EACH,
    GEMINI,
    LOCAL,
    LOOK,
    ModelClients,
    StreamRecorder,
    model_clients,
)
from tests.support.model_server.script import Call, Turn

from handrail.own_agent.history import History
from handrail.own_agent.tools.agent_tool import Result

pytestmark = pytest.mark.anyio
OLDER = "anthropic:claude-haiku-4-5"


async def step(talk: ModelClients, name: str, history: History, turn: Turn) -> None:
    """One answer, and the results of its calls."""
    model = await talk.models.model(name, "low")
    talk.server.play(turn)
    for call in history.add_response(await model.request(history.messages, [LOOK], StreamRecorder())):
        history.add_result(call, Result(text="seen", failed=call.args_as_dict().get("a") == 2, ended="done"))


WORK = Turn("I look twice.", "look", {"a": 1}, think="Let me see.", calls=(Call("look", {"a": 2}),))


@pytest.mark.parametrize("first", [*EACH, OLDER])
@pytest.mark.parametrize("second", [*EACH, OLDER])
async def test_one_takes_up_in_the_middle_of_a_step_what_another_began(first: str, second: str) -> None:
    history = History()
    async with model_clients() as talk:
        history.add_prompt("Look, please.")
        await step(talk, first, history, WORK)
        await step(talk, second, history, WORK)
        await step(talk, first, history, Turn("Done.", think="That was all."))
        history.add_prompt("And again.")
        await step(talk, second, history, Turn("Done again."))
        assert talk.server.refused == []
        assert await talk.server.endings() == ["whole"] * 4


@pytest.mark.parametrize("name", [CLAUDE, LOCAL, GEMINI])
async def test_what_was_cut_off_or_never_answered_is_taken_by_every_provider(name: str) -> None:
    history = History()
    async with model_clients() as talk:
        history.add_prompt("First.")
        history.break_off("", "cancelled by the person")
        history.add_prompt("Second.")
        history.break_off("I was about to", "cancelled by the person")
        history.add_prompt("Third.")
        history.add_prompt("Fourth.")
        await step(talk, name, history, Turn(tool="look", input={"a": 1}, calls=(Call("look", {"a": 2}),)))
        history.break_off("Now I", "the connection broke")
        history.add_prompt("Fifth.")
        await step(talk, name, history, Turn("Here I am."))
        assert talk.server.refused == []


@pytest.mark.parametrize("name", [CLAUDE, LOCAL])
async def test_malformed_input_does_not_spoil_what_comes_after(name: str) -> None:
    history = History()
    async with model_clients() as talk:
        history.add_prompt("Look.")
        await step(talk, name, history, Turn(tool="look", input='{"path": "a'))
        await step(talk, name, history, Turn("So be it."))
        assert talk.server.refused == []
