"""What can be chosen, what is meant unless somebody chooses, and what that costs to load."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from anyio import to_thread
from tests.house.source import SRC
from tests.support.model_providers import FAST_RETRIES, provider_environment
from tests.support.model_server.server import model_server

from handrail.config import OwnAgentSection
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import BUILTIN_MODELS, Models
from handrail.own_agent.models.model import ModelError

pytestmark = pytest.mark.anyio
NOWHERE = "http://127.0.0.1:9/v1"
"""Where nobody listens, not even on the machine of somebody who has Ollama."""


def models(env: dict[str, str], settings: OwnAgentSection | None = None) -> Models:
    return Models(Keys({"OLLAMA_BASE_URL": NOWHERE, **env}), settings or OwnAgentSection(), FAST_RETRIES)


async def test_a_key_offers_the_short_list_of_its_provider() -> None:
    own = models({"ANTHROPIC_API_KEY": "a"})
    names = [each.name for each in await own.offered()]
    assert names == [f"anthropic:{name}" for name, _ in BUILTIN_MODELS["anthropic"]]
    assert await own.default() == names[0]
    await own.aclose()


def test_the_short_lists_name_models_that_there_are() -> None:
    from pydantic_ai.models import KnownModelName  # noqa: PLC0415

    known = get_args(KnownModelName.__value__)
    named = [f"{provider}:{name}" for provider, listed in BUILTIN_MODELS.items() for name, _ in listed]
    assert set(named) <= set(known)


async def test_a_server_of_ones_own_is_asked_for_its_models_with_the_key_it_wants() -> None:
    with model_server() as server:
        server.models = ["small", "large"]
        own = models({"OPENAI_BASE_URL": f"{server.url}/v1/", "OLLAMA_BASE_URL": f"{server.url}/v1"})
        offered = await own.offered()
        assert [each.name for each in offered] == [
            "openai:small",
            "openai:large",
            "ollama:small",
            "ollama:large",
        ]
        assert await own.default() == "openai:small"
        await own.aclose()
        assert server.strange == []


async def test_a_server_that_does_not_answer_holds_nobody_up() -> None:
    own = models({"OPENAI_BASE_URL": NOWHERE, "GOOGLE_API_KEY": "g"})
    assert [each.name.partition(":")[0] for each in await own.offered()] == ["google"] * len(
        BUILTIN_MODELS["google"]
    )
    await own.aclose()


async def test_what_was_set_comes_first_the_variable_before_the_file() -> None:
    settings = OwnAgentSection(model="anthropic:claude-haiku-4-5")
    own = models({"ANTHROPIC_API_KEY": "a"}, settings)
    assert await own.default() == "anthropic:claude-haiku-4-5"
    assert (await own.offered())[0].name == "anthropic:claude-haiku-4-5"
    await own.aclose()
    own = models({"ANTHROPIC_API_KEY": "a", "HANDRAIL_MODEL": "anthropic:claude-sonnet-5-5"}, settings)
    assert await own.default() == "anthropic:claude-sonnet-5-5"
    assert [each.name for each in await own.offered()].count("anthropic:claude-sonnet-5-5") == 1
    await own.aclose()


async def test_a_name_without_its_provider_is_known_and_nonsense_is_left_to_be_said() -> None:
    own = models({"ANTHROPIC_API_KEY": "a", "HANDRAIL_MODEL": "claude-sonnet-5-5"})
    assert await own.default() == "anthropic:claude-sonnet-5-5"
    assert await models({"HANDRAIL_MODEL": "nonsense"}).default() == "nonsense"


async def test_a_context_that_nobody_knows_is_as_it_was_set() -> None:
    own = models({"OPENAI_BASE_URL": NOWHERE, "ANTHROPIC_API_KEY": "a"}, OwnAgentSection(context=32_000))
    assert (await own.model("openai:mine")).window == 32_000
    assert (await own.model("anthropic:claude-sonnet-5-5")).window == 1_000_000
    await own.aclose()


async def test_a_model_is_made_once_until_all_is_closed() -> None:
    own = models({"OPENAI_BASE_URL": NOWHERE})
    first = await own.model("openai:mine", "low")
    assert await own.model("openai:mine", "low") is first
    assert await own.model("openai:mine", "high") is not first
    await own.aclose()
    assert await own.model("openai:mine", "low") is not first
    await own.aclose()


async def test_without_a_key_there_is_none_and_a_sentence_says_how_to_give_one() -> None:
    own = models({})
    assert await own.offered() == []
    assert await own.default() is None
    for name in (None, "anthropic:claude-sonnet-5-5"):
        with pytest.raises(ModelError, match="ANTHROPIC_API_KEY") as caught:
            await own.model(name)
        assert caught.value.login
    with pytest.raises(ModelError, match="names no model"):
        await own.model("nonsense")
    await own.aclose()


async def test_after_closing_it_can_be_asked_anew() -> None:
    with model_server() as server:
        own = models(provider_environment(server))
        for _ in range(2):
            await own.offered()
            await own.aclose()
            await server.until(lambda: not server.open)
        assert len(server.connections) >= 2


def test_a_cancel_does_not_wait_for_what_is_slow_to_load() -> None:
    program = f"""
import sys, time; sys.path.insert(0, {str(SRC)!r})
import anyio
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models
from handrail.config import OwnAgentSection
async def main():
    models = Models(Keys(dict(ANTHROPIC_API_KEY="a")), OwnAgentSection())
    with anyio.move_on_after(0.05) as scope:
        await models.model("anthropic:claude-sonnet-5-5")
    assert scope.cancelled_caught
    assert not models._clients  # nobody waited for it
    print((await models.model("anthropic:claude-sonnet-5-5")).name)  # by another thread, after the one given up
    await models.aclose()
anyio.run(main)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "anthropic:claude-sonnet-5-5"


def test_knowing_them_loads_nothing_that_is_slow() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(SRC)!r}); import handrail.own_agent.models.catalog; "
        "print(sorted({'pydantic_ai', 'httpx2', 'keyring', 'anthropic', 'openai', 'google.genai'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_BASE_URL": NOWHERE}, "anthropic:claude-opus-5-5"),
        ({"GOOGLE_API_KEY": "g", "HANDRAIL_MODEL": "gemini-3.8-flash"}, "google:gemini-3.8-flash"),
        ({"OPENAI_BASE_URL": NOWHERE, "GOOGLE_API_KEY": "g"}, None),
        ({"OPENAI_BASE_URL": NOWHERE, "HANDRAIL_MODEL": "openai:mine"}, "openai:mine"),
        ({}, None),
    ],
)
async def test_what_is_certain_is_known_at_once_and_what_is_not_may_come_before_it(
    given: dict[str, str], first: str | None
) -> None:
    own = models(given)
    known = own.known()
    assert own.preferred(known) == first
    assert bool(known) == (first is not None)
    if first is not None:
        assert await own.default() == first
        assert {each.name for each in known} <= {each.name for each in await own.offered()}
    await own.aclose()


LOADED = """
import sys
from pathlib import Path
import anyio
from handrail.config import OwnAgentSection
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models

anyio.run(Models(Keys({}), OwnAgentSection(), last_provider=Path(sys.argv[1])).load_provider)
print([name for name in ("openai", "anthropic") if f"pydantic_ai.models.{name}" in sys.modules])
"""


async def test_without_a_key_the_provider_that_was_used_last_is_loaded(tmp_path: Path) -> None:
    """A process that is started before its thread is known gets its keys later."""
    file = tmp_path / "provider"
    own = Models(Keys({"OPENAI_API_KEY": "a"}), OwnAgentSection(), FAST_RETRIES, file)
    await own.model("openai:gpt-6-luna")
    await own.aclose()
    assert file.read_text() == "openai"

    for content, loaded in (("openai", ["openai"]), ("../evil", []), ("\udcff", [])):
        file.write_bytes(content.encode(errors="surrogateescape"))
        program = [sys.executable, "-c", LOADED, str(file)]
        done = await to_thread.run_sync(
            lambda: subprocess.run(program, capture_output=True, text=True, check=True, timeout=120)  # noqa: B023
        )
        assert done.stdout.strip() == str(loaded), (content, done.stderr)
