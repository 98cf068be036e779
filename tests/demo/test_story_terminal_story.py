"""The demo's terminal, without a person: nothing of it waits for ever, nothing is left running."""

import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from tests.support.cli_home import BOUND

from handrail.demo import story
from handrail.demo.mcp_client import Agent, Client, open_door
from handrail.demo.story import make_scene

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@asynccontextmanager
async def behind_a_door() -> AsyncGenerator[Client]:
    with anyio.fail_after(BOUND), make_scene() as made:
        async with open_door(made.project) as client:
            yield client


async def running(client: Client) -> list[str]:
    listed = await client.call("list_tracked_terminals", runningOnly=True)
    return [each["name"] for each in listed.data["terminals"]]


@pytest.mark.usefixtures("allowed")
async def test_where_nobody_types_the_secret_the_agent_goes_on_and_closes_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(story, "SECRET_SECONDS", 0.2)
    monkeypatch.setattr(story, "STAYS_SECONDS", 0.2)
    said: list[str] = []
    left: set[str] = set()
    async with behind_a_door() as client:
        await story.play_terminal_act(Agent(client, said.append, left), BOUND)
        assert await running(client) == []
    told = "\n".join(said)
    assert "Nobody typed it" in told
    assert "Stopped 2 processes" in told  # the shell, the program that asks
    assert said[-1].startswith(f"  {story.QUESTIONS_PROGRAM} ")
    assert not left


@pytest.mark.usefixtures("allowed")
async def test_an_agent_that_leaves_in_the_middle_leaves_no_terminal_behind() -> None:
    said: list[str] = []
    async with behind_a_door() as client:
        with anyio.CancelScope() as scope:

            def say(words: str) -> None:
                said.append(words)
                if "It is recorded nowhere" in words:
                    scope.cancel()

            await story.play_terminal_act(Agent(client, say, set()), BOUND)
        assert scope.cancelled_caught
        assert await running(client) == []


def test_python_is_called_by_a_name_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shutil.which(story.python_command())
    monkeypatch.setenv("PATH", "/nowhere")
    assert story.python_command() == sys.executable
