"""A model is asked over real HTTP: heard as it speaks, asked again where that helps, and left at once when cancelled."""

import gc
import random
from collections.abc import Iterator
from decimal import Decimal
from time import monotonic

import anyio
import pytest
from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart
from tests.support.model_providers import (
    CLAUDE,
    EACH,
    FAST_RETRIES,
    GEMINI,
    GPT,
    LOCAL,
    LOOK,
    OLLAMA,
    PROMPT,
    ModelClients,
    StreamRecorder,
    model_clients,
    openai_clients,
)
from tests.support.model_server.script import Call, Turn

from handrail.own_agent.models.http_stream import RetryPolicy
from handrail.own_agent.models.model import ModelError

pytestmark = pytest.mark.anyio
AT_ONCE = 0.25
"""Seconds within which a server sees its listener leave, on a busy machine."""


@pytest.mark.parametrize("name", EACH)
async def test_an_answer_is_heard_word_by_word_with_its_thoughts_and_tools(name: str) -> None:
    heard = StreamRecorder()
    async with model_clients() as talk:
        talk.server.play(
            Turn("Two words.", "look", {"a": 1}, think="Let me see.", calls=(Call("look", {"a": 2}),))
        )
        answer = await talk.ask(name, heard)
    assert heard.words == ["Two ", "words."]
    assert ("".join(heard.thoughts), heard.thought_ends) == ("Let me see.", 1)
    thought, text, *calls = answer.parts
    assert isinstance(thought, ThinkingPart)
    assert isinstance(text, TextPart)
    assert text.content == "Two words."
    assert [call.args_as_dict() for call in calls if isinstance(call, ToolCallPart)] == [{"a": 1}, {"a": 2}]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)
    assert talk.server.refused == []


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("trouble", [429, 500, 503, 529, "refuse", "broken", "stall", "overloaded"])
async def test_what_passes_is_asked_again_and_said(name: str, trouble: int | str) -> None:
    heard = StreamRecorder()
    async with model_clients() as talk:
        talk.server.play(Turn("At last, an answer.", trouble=(trouble,)))  # pyright: ignore[reportArgumentType]
        await talk.ask(name, heard)
    assert "".join(heard.words) == "At last, an answer."
    ((why, _),) = heard.agains
    assert why
    assert len(talk.server.asked) == 2


@pytest.mark.parametrize("name", [CLAUDE, LOCAL])
async def test_a_provider_that_says_when_is_asked_then(name: str) -> None:
    heard = StreamRecorder()
    async with model_clients(RetryPolicy(first=30)) as talk:
        talk.server.play(Turn("Now.", trouble=(429,), retry_after=0.3))
        await talk.ask(name, heard)
    first, second = talk.server.asked
    assert [seconds for _, seconds in heard.agains] == [0.3]
    assert 0.3 <= second.at - first.at < 5


async def test_a_provider_that_wants_an_hour_is_not_waited_for() -> None:
    async with model_clients() as talk:
        talk.server.play(Turn("Now.", trouble=(429,), retry_after=3600))
        with pytest.raises(ModelError, match="of 60 minutes"):
            await talk.ask(CLAUDE)
    assert len(talk.server.asked) == 1


async def test_after_enough_tries_it_says_so() -> None:
    heard = StreamRecorder()
    async with model_clients(RetryPolicy(first=0.001, longest=0.001, tries=3)) as talk:
        talk.server.play(Turn(trouble=(529, 529, 529, 529)))
        with pytest.raises(ModelError, match=r"overloaded\. It was asked 3 times"):
            await talk.ask(CLAUDE, heard)
    assert (len(talk.server.asked), len(heard.agains)) == (3, 2)


@pytest.mark.parametrize(
    ("trouble", "sentence", "login", "too_long"),
    [
        (401, "refused the key", True, False),
        (404, "has no model", False, False),
        (400, "refused the request", False, False),
        ("too_long", "too long", False, True),
    ],
)
@pytest.mark.parametrize("name", [CLAUDE, LOCAL, OLLAMA])
async def test_what_no_other_try_would_better_is_told_at_once(
    name: str, trouble: int, sentence: str, login: bool, too_long: bool
) -> None:
    async with model_clients() as talk:
        talk.server.play(Turn(trouble=(trouble,)))
        with pytest.raises(ModelError, match=sentence) as caught:
            await talk.ask(name)
    assert (caught.value.login, caught.value.too_long) == (login, too_long)
    assert len(talk.server.asked) == 1


async def test_where_nobody_is_there_the_address_is_said() -> None:
    async with model_clients(env={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}) as talk:
        with pytest.raises(
            ModelError, match=r"could not be reached at http://127\.0\.0\.1:9/v1/\. It was asked 3"
        ):
            await talk.ask(LOCAL)


@pytest.mark.parametrize(
    ("stop", "reason"), [("", "stop"), ("length", "length"), ("refusal", "content_filter")]
)
@pytest.mark.parametrize("name", EACH)
async def test_why_an_answer_ends_is_known(name: str, stop: str, reason: str) -> None:
    async with model_clients() as talk:
        talk.server.play(Turn("So far.", stop=stop))  # pyright: ignore[reportArgumentType]
        assert (await talk.ask(name)).finish_reason == reason


async def test_malformed_input_of_a_tool_comes_as_it_was_sent() -> None:
    async with model_clients() as talk:
        for name in (CLAUDE, LOCAL):
            talk.server.play(Turn(tool="look", input='{"path": "a'))
            (call,) = (await talk.ask(name)).parts
            assert isinstance(call, ToolCallPart)
            assert call.args == '{"path": "a'


@pytest.fixture
def only_new_garbage() -> Iterator[None]:
    """Hide all older objects from the collector, which takes a quarter of a second to visit them."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("only_new_garbage")
@pytest.mark.parametrize("name", [*EACH, GPT])
@pytest.mark.parametrize(
    "turn",
    [
        Turn("I am thinking about", hang=True),
        Turn(think="Hm, let me see", hang=True),
        Turn("Never.", trouble=("silent",)),
    ],
    ids=["speaking", "thinking", "silent"],
)
async def test_cancelled_it_has_closed_its_connection_before_it_goes_on(name: str, turn: Turn) -> None:
    async with openai_clients() if name == GPT else model_clients() as talk:
        talk.server.play(turn)
        await _cancelled(talk, name, talk.server.silent.is_set)
        # Nothing runs on the loop while we wait here: whoever has not left yet never will.
        assert talk.server.left.wait(AT_ONCE)
        talk.server.play(Turn("Here I am."))
        await talk.ask(name)
    gc.collect()
    assert await talk.server.endings() == ["left", "whole"]


async def _cancelled(talk: ModelClients, name: str, when: "object") -> None:
    assert callable(when)
    model = await talk.models.model(name)
    async with anyio.create_task_group() as group:
        group.start_soon(model.request, PROMPT, [LOOK], StreamRecorder())
        await talk.server.until(lambda: bool(when()))
        group.cancel_scope.cancel()


async def test_cancelled_while_it_waits_to_ask_again_it_does_not() -> None:
    heard = StreamRecorder()
    async with model_clients(RetryPolicy(first=30)) as talk:
        talk.server.play(Turn("Never.", trouble=(429,), retry_after=30))
        model = await talk.models.model(CLAUDE)
        began = monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(model.request, PROMPT, [LOOK], heard)
            await talk.server.until(lambda: bool(heard.agains))
            group.cancel_scope.cancel()
    assert monotonic() - began < 10
    assert await talk.server.endings() == ["refused"]


@pytest.mark.parametrize("name", [*EACH, GPT])
async def test_cancelled_at_any_moment_it_leaves_nothing_open(name: str) -> None:
    chance = random.Random(name)
    async with openai_clients() if name == GPT else model_clients() as talk:
        model = await talk.models.model(name)
        for _ in range(25):
            talk.server.play(Turn("One two three four five.", think="Hm, hm.", pace=0.002))
            with anyio.move_on_after(chance.uniform(0, 0.04)):
                await model.request(PROMPT, [], StreamRecorder())
        # A connection that carries no answer may be kept for the next; any other is closed.
        await talk.server.until(lambda: all(each.ended for each in talk.server.asked))
        assert len(talk.server.open) <= 1
    gc.collect()
    assert set(await talk.server.endings()) <= {"whole", "left"}


async def test_the_cost_is_known_where_the_price_is() -> None:
    async with model_clients() as talk:
        talk.server.play(Turn("Dear.", usage={"input": 1_000_000, "output": 100_000}), Turn("Free."))
        claude, local = await talk.models.model(CLAUDE), await talk.models.model(LOCAL)
        assert claude.cost(await talk.ask(CLAUDE)) == Decimal(3)
        assert local.cost(await talk.ask(LOCAL)) is None


async def test_the_context_is_known_or_as_it_was_set() -> None:
    async with model_clients() as talk:
        assert (await talk.models.model(CLAUDE)).window == 1_000_000
        assert (await talk.models.model(GEMINI)).window
        assert (await talk.models.model(LOCAL)).window is None


async def test_no_sentence_has_a_key_in_it() -> None:
    async with model_clients() as talk:
        talk.server.key = "another"
        for name in (CLAUDE, GEMINI):
            with pytest.raises(ModelError, match="refused the key") as caught:
                await talk.ask(name)
            assert "sk-of" not in caught.value.sentence


def test_the_waits_grow_and_differ() -> None:
    policy = RetryPolicy()
    assert 0.5 <= policy.wait(1) <= 1
    assert 15 <= policy.wait(20) <= 30
    assert len({policy.wait(3) for _ in range(10)}) > 1
    assert FAST_RETRIES.wait(5) <= 0.02
