"""What tests of models share: the scripted server by any provider's name, and somebody who hears."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse
from pydantic_ai.tools import ToolDefinition
from tests.model.server import ModelServer, model_server

from handrail.config import OwnAgentSection
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models, ThoughtLevel
from handrail.own_agent.models.http_stream import RetryPolicy

HASTY = RetryPolicy(first=0.01, longest=0.02, connect=1.0, stall=1.0, long_stall=1.0)
"""Waits that are over at once, in tests that do not measure them."""
CLAUDE, LOCAL, GEMINI, OLLAMA = (
    "anthropic:claude-sonnet-5-5",
    "openai:scripted",
    "google:gemini-4-argon",
    "ollama:qwen3",
)
GPT = "openai:gpt-6.1-sol"
"""By OpenAI itself: only `at_openai` makes that the scripted server."""
EACH = [CLAUDE, LOCAL, GEMINI, OLLAMA]
LOOK = ToolDefinition(
    name="look", description="Look", parameters_json_schema={"type": "object", "properties": {}}
)
PROMPT = [ModelRequest.user_text_prompt("Hello?", instructions="Be good.")]


@dataclass
class Heard:
    """Takes down what it hears."""

    words: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    thought_ends: int = 0
    agains: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    def text(self, words: str) -> None:
        self.words.append(words)

    def thought(self, words: str) -> None:
        self.thoughts.append(words)

    def thought_ended(self) -> None:
        self.thought_ends += 1

    def again(self, why: str, seconds: float) -> None:
        self.agains.append((why, seconds))
        self.words.clear()
        self.thoughts.clear()


def given(server: ModelServer) -> dict[str, str]:
    """What makes every provider be the scripted one."""
    return {
        "ANTHROPIC_API_KEY": "sk-of-anthropic",
        "ANTHROPIC_BASE_URL": server.url,
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "GOOGLE_API_KEY": "sk-of-google",
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "OLLAMA_BASE_URL": f"{server.url}/v1",
    }


@dataclass
class Talk:
    """The server, our models, and one way to ask."""

    server: ModelServer
    models: Models

    async def ask(
        self, name: str, heard: Heard | None = None, level: ThoughtLevel | None = None
    ) -> ModelResponse:
        model = await self.models.model(name, level)
        return await model.request(PROMPT, [LOOK], heard or Heard())


@asynccontextmanager
async def talking(policy: RetryPolicy = HASTY, env: Mapping[str, str] | None = None) -> AsyncGenerator[Talk]:
    with model_server() as server:
        models = Models(Keys(given(server) if env is None else env), OwnAgentSection(), policy)
        try:
            yield Talk(server, models)
        finally:
            await models.aclose()
        await server.until(lambda: not server.open)  # nothing that we opened is left open


@asynccontextmanager
async def at_openai() -> AsyncGenerator[Talk]:
    """OpenAI's own address is not to be set; so its package is told, past us, where that is."""
    with model_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        models = Models(Keys({"OPENAI_API_KEY": "sk-of-openai"}), OwnAgentSection(), HASTY)
        yield Talk(server, models)
        await models.aclose()
        await server.until(lambda: not server.open)
