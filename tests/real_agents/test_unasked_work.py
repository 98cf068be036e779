"""Agents that act without asking: their mode is read, what they did is recorded, and the mode that asks is offered.

Each is hosted by a real daemon, against a model that is scripted. None of them reaches a network.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from tests.real_agents.agent_catalog import CLAUDE, GEMINI, GOOSE, OPENCODE, QWEN
from tests.real_agents.hosting import SLOW, Hosted, answering, ended, hosting
from tests.real_agents.python_agents import HERMES, VIBE
from tests.real_agents.real_agent import BY_ITSELF, Question, Real
from tests.support.daemon_home import eventually
from tests.support.model_server.script import Turn, script
from tests.support.person_client import Json
from tests.support.thread_client import Conversation

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """An agent in a mode, and what a person knows of it."""

    real: Real
    mode: str
    """Its id, or that of a choice."""
    asks: str | None
    """What Handrail says that it asks about; None if it claims nothing."""
    writes: bool
    """Whether it writes a file unasked."""
    runs: bool
    """Whether it runs a command unasked."""
    tells_diff: bool = True
    """Whether it says what it wrote, beside the name of the file."""

    @property
    def questions(self) -> list[Question]:
        """About one new file and one command: Handrail asks about what it does itself in any mode."""
        writes: list[Question] = [
            each for each in self.real.write_asks if each != "agent_work" or not self.writes
        ]
        runs: list[Question] = [each for each in self.real.run_asks if each != "agent_work" or not self.runs]
        return writes + runs

    @property
    def recorded(self) -> tuple[bool, bool]:
        """Whether the diff of its new file, and its command, are found as unasked."""
        by_itself = ((), BY_ITSELF)
        return (
            self.writes and self.tells_diff and self.real.write_asks in by_itself,
            self.runs and self.real.run_asks in by_itself,
        )


def _unasking(real: Real) -> Real:
    """opencode without the settings by which it asks."""

    def environment(model: str) -> dict[str, str]:
        variables = dict(real.environment(model))
        settings: Json = json.loads(variables["OPENCODE_CONFIG_CONTENT"])
        del settings["permission"]
        return variables | {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}

    return replace(real, environment=environment)


CASES = (
    Unasked(real=CLAUDE, mode="acceptEdits", asks="commands", writes=True, runs=True),
    Unasked(real=QWEN, mode="yolo", asks="nobody", writes=True, runs=True),
    Unasked(real=GEMINI, mode="yolo", asks="nobody", writes=True, runs=True),
    Unasked(real=GOOSE, mode="auto", asks="nobody", writes=True, runs=True),
    Unasked(real=_unasking(OPENCODE), mode="build", asks=None, writes=True, runs=True, tells_diff=False),
    Unasked(real=VIBE, mode="accept-edits", asks="commands", writes=True, runs=False),
    Unasked(real=HERMES, mode="default", asks=None, writes=False, runs=True),
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(case, id=case.real.name, marks=() if case.real is CLAUDE else pytest.mark.all_clients)
        for case in CASES
    ],
)
def case(request: pytest.FixtureRequest) -> Unasked:
    return request.param


@pytest.fixture(scope="module")
def hosted(case: Unasked) -> Iterator[Hosted]:
    with hosting(case.real) as hosted:
        yield hosted
        assert (hosted.model.strange, hosted.model.refused) == ([], [])


async def test_what_an_agent_does_unasked_is_recorded_and_the_mode_that_asks_is_offered(
    case: Unasked, hosted: Hosted
) -> None:
    real, person, thread = case.real, hosted.person, await hosted.begin()
    await said(thread, Turn("Hello."))
    await set_mode(thread, case.mode)
    await asks(thread, case.asks)

    path, made = hosted.workspace / "unasked.txt", hosted.workspace / "made-here"
    turns = (real.writes(path, "by an agent\n"), real.runs("touch made-here && ls"), Turn("It is done."))
    async with answering(person, "allow") as asked:
        await said(thread, *turns)
    assert (path.read_text(), made.exists()) == ("by an agent\n", True)
    assert [approval["tool"] for approval in asked] == case.questions

    async def look() -> bool:
        calls = [each for each in await person.get("calls", unasked=True) if each["thread"] == thread.id]
        assert all(call["allowed_by"] == "nobody" and call["status"] == "done" for call in calls), calls
        previews: list[Json] = [(await person.call(call["id"]))["preview"] or {} for call in calls]
        has_diff = any("+by an agent" in preview.get("diff", "") for preview in previews)
        has_command = any("touch made-here" in call["title"] for call in calls)
        return (has_diff, has_command) == case.recorded

    assert await eventually(look)  # recorded soon after the agent's message

    asking: Json = (await thread.look())["state"].get("asking") or {}
    assert bool(asking) == (case.asks is not None)
    if asking:
        body = {key: asking["switch"][key] for key in ("setting", "id", "value")}
        (await person.ask("POST", f"{thread.path}/setting", body)).raise_for_status()
        await asks(thread, "everything")
        async with answering(person, "allow") as asked:
            await said(thread, real.writes(hosted.workspace / "asked.txt", "asked\n"), Turn("It is done."))
        assert "agent_work" in [approval["tool"] for approval in asked]


async def said(thread: Conversation, *turns: Turn) -> Json:
    message = await ended(thread, (await thread.say(script(*turns)))["operation"])
    assert message["stop"] == "end_turn", message
    return message


async def set_mode(thread: Conversation, mode: str) -> None:
    """As a person chooses it on the page: of the options where the agent has such an option."""
    state = (await thread.look())["state"]
    options = [each for each in state.get("options", {}).get("options", ()) if each["category"] == "mode"]
    current = options[0]["value"] if options else state.get("modes", {}).get("current")
    if current != mode:
        kind = {"setting": "option", "id": options[0]["id"]} if options else {"setting": "mode", "id": ""}
        body = {**kind, "value": mode}
        (await thread.person.ask("POST", f"{thread.path}/setting", body)).raise_for_status()


async def asks(thread: Conversation, about: str | None) -> None:
    async def is_told() -> bool:
        return (await thread.look())["asks"] == about

    await eventually(is_told, SLOW)
