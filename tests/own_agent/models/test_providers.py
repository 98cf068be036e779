"""What really goes over the wire: keys, caching, thinking, and nothing to anybody else."""

from typing import Any

import pytest
from tests.support.model_providers import CLAUDE, GEMINI, LOCAL, OLLAMA, model_clients, provider_environment
from tests.support.model_server.script import Turn
from tests.support.model_server.server import model_server

from handrail.own_agent.models.catalog import ThoughtLevel

pytestmark = pytest.mark.anyio


async def sent(name: str, level: ThoughtLevel | None = None) -> dict[str, Any]:
    async with model_clients() as talk:
        talk.server.play(Turn("Yes."))
        await talk.ask(name, level=level)
    return talk.server.asked[0].body


async def test_anthropic_is_told_to_keep_what_stays_the_same() -> None:
    body = await sent(CLAUDE)
    assert body["tools"][-1]["cache_control"]["type"] == "ephemeral"
    assert body["system"][-1]["cache_control"]["type"] == "ephemeral"
    assert body["cache_control"]["type"] == "ephemeral"


async def test_anthropic_thinks_as_long_as_it_was_told_and_shows_it() -> None:
    body = await sent(CLAUDE, "high")
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "high"}
    assert "adaptive" not in str((await sent(CLAUDE, "off"))["thinking"])
    older = await sent("anthropic:claude-haiku-4-5", "low")
    assert older["thinking"]["type"] == "enabled"
    assert 1024 <= older["thinking"]["budget_tokens"] < older["max_tokens"]


async def test_the_others_think_as_long_as_they_were_told() -> None:
    assert (await sent(GEMINI, "low"))["generationConfig"]["thinkingConfig"]["thinking_level"] == "LOW"
    for name in (LOCAL, OLLAMA):
        assert (await sent(name, "medium"))["reasoning_effort"] == "medium"
        assert (await sent(name, "off"))["reasoning_effort"] == "none"
        assert "reasoning_effort" not in await sent(name)


async def test_each_provider_gets_its_own_key_and_a_server_of_ones_own_none() -> None:
    async with model_clients() as talk:
        for name, key in (
            (CLAUDE, "sk-of-anthropic"),
            (GEMINI, "sk-of-google"),
            (LOCAL, None),
            (OLLAMA, None),
        ):
            talk.server.play(Turn("Yes."))
            await talk.ask(name)
            headers = str(talk.server.asked[-1].headers)
            assert [each for each in ("sk-of-anthropic", "sk-of-google") if each in headers] == (
                [key] if key else []
            )


async def test_a_token_goes_where_tokens_go() -> None:
    with model_server() as server:
        env = {"ANTHROPIC_AUTH_TOKEN": "a-token-of-mine", "ANTHROPIC_BASE_URL": server.url}
        async with model_clients(env=env) as talk:
            server.play(Turn("Yes."))
            await talk.ask(CLAUDE)
        assert server.asked[0].headers["authorization"] == "Bearer a-token-of-mine"


async def test_the_key_of_a_server_of_ones_own_is_sent_to_it() -> None:
    with model_server() as server:
        server.key = "a-key-of-mine"
        async with model_clients(
            env={**provider_environment(server), "OPENAI_API_KEY": "a-key-of-mine"}
        ) as talk:
            server.play(Turn("Yes."))
            await talk.ask(LOCAL)
        assert await server.endings() == ["whole"]
