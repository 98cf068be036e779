"""Model clients of each provider, connected to the scripted model server, and a recorder for their streams."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse
from pydantic_ai.tools import ToolDefinition
from tests.support.model_server.server import ModelServer, model_server

from handrail.config import OwnAgentSection
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models, ThoughtLevel
from handrail.own_agent.models.http_stream import RetryPolicy

FAST_RETRIES = RetryPolicy(first=0.01, longest=0.02, connect=1.0, stall=1.0, long_stall=1.0)
"""Short waits, for tests that do not measure them."""
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
class StreamRecorder:
    """Records the pieces of a stream."""

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


def provider_environment(server: ModelServer) -> dict[str, str]:
    """The environment that directs every provider to the scripted server."""
    return {
        "ANTHROPIC_API_KEY": "sk-of-anthropic",
        "ANTHROPIC_BASE_URL": server.url,
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "GOOGLE_API_KEY": "sk-of-google",
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "OLLAMA_BASE_URL": f"{server.url}/v1",
    }


@dataclass
class ModelClients:
    """The scripted server and our model clients."""

    server: ModelServer
    models: Models

    async def ask(
        self, name: str, heard: StreamRecorder | None = None, level: ThoughtLevel | None = None
    ) -> ModelResponse:
        model = await self.models.model(name, level)
        return await model.request(PROMPT, [LOOK], heard or StreamRecorder())


@asynccontextmanager
async def model_clients(
    policy: RetryPolicy = FAST_RETRIES, env: Mapping[str, str] | None = None
) -> AsyncGenerator[ModelClients]:
    with model_server() as server:
        models = Models(Keys(provider_environment(server) if env is None else env), OwnAgentSection(), policy)
        try:
            yield ModelClients(server, models)
        finally:
            await models.aclose()
        await server.until(lambda: not server.open)  # nothing that we opened is left open


@asynccontextmanager
async def openai_clients() -> AsyncGenerator[ModelClients]:
    """Clients for OpenAI itself. Its address is not configurable, so the package's variable is set."""
    with model_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        models = Models(Keys({"OPENAI_API_KEY": "sk-of-openai"}), OwnAgentSection(), FAST_RETRIES)
        yield ModelClients(server, models)
        await models.aclose()
        await server.until(lambda: not server.open)
