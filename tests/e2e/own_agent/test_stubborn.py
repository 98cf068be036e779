"""Tools that raise, that take their server with them, and that ignore a cancel: the operation is the same as ever."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser
from tests.support.daemon_home import eventually
from tests.support.model_server.script import Call, Turn
from tests.support.own_agent_scenario import WITH_MCP_SERVER, AgentDaemon, Scenario, scenario
from tests.support.person_client import allow_everything
from tests.support.thread_client import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

TRAPPED = "trap '' TERM HUP INT; echo is-trapped; while :; do sleep 1008; done"
LOST = "(setsid sh -c \"trap '' TERM HUP INT; sleep 1009\" &); sleep 1010"


@pytest.fixture
async def here(stage: AgentDaemon, browser: Browser, workspace: Path) -> AsyncGenerator[Scenario]:
    async with scenario(stage, workspace, browser, WITH_MCP_SERVER) as here:
        yield here


async def allow_stranger(stage: AgentDaemon) -> None:
    await stage.person.allow("stranger")


async def test_a_tool_that_raises_is_a_result_like_any_other(here: Scenario, stage: AgentDaemon) -> None:
    calls = (
        Call("stranger__raises"),
        Call("read_file", {"path": "is-not-there.txt"}),
        Call("there_is_no_such_tool"),
        Call("execute_command", '{"command": "ech'),
        Call("execute_command", {"command": "exit 3"}),
    )
    operation = await here.say(Turn("All of these fail.", calls=calls), Turn("I have seen it."))
    await allow_stranger(stage)

    assert text_of(await here.ended(operation)) == "All of these fail.I have seen it."

    raised, missing, unknown, malformed, code = [each for each in here.told if each.kind == "result"]
    assert all(each.failed for each in (raised, missing, unknown, malformed))
    assert "division by zero" in raised.text
    assert "is-not-there.txt" in missing.text
    assert "there_is_no_such_tool" in unknown.text
    assert "JSON" in malformed.text
    assert "3" in code.text
    ends = [each["how"] for each in (await here.doing(operation))["activities"] if each["sort"] == "call"]
    assert ends[:4] == ["failed"] * 4
    await here.at_rest()


async def test_a_tool_that_takes_its_server_with_it_fails_and_the_server_is_there_again(
    here: Scenario, stage: AgentDaemon
) -> None:
    operation = await here.say(
        Turn("It dies.", "stranger__dies"), Turn("And is back.", "stranger__greet"), Turn("Well.")
    )
    await allow_stranger(stage)
    await here.busy(operation, lambda busy: len(busy.of("call", "failed")) == 1)
    await allow_stranger(stage)

    assert text_of(await here.ended(operation)) == "It dies.And is back.Well."

    died, greeted = [each for each in here.told if each.kind == "result"]
    assert (died.failed, "stranger" in died.text) == (True, True)
    assert (greeted.failed, greeted.text) == (False, "Hello from the stranger.")
    (again,) = here.started  # the server, started anew: it belongs to the agent, like the one before it
    assert "stubborn.py" in again.command
    here.family |= {again.key}
    await here.at_rest()


@pytest.mark.parametrize("line", [TRAPPED, LOST], ids=["deaf to signals", "lost to its parents"])
async def test_a_command_that_ignores_a_cancel_is_cancelled_at_once_and_ended_all_the_same(
    here: Scenario, stage: AgentDaemon, line: str
) -> None:
    async def runs() -> bool:
        return bool(here.running("sleep 1008") or here.running("sleep 1009"))

    with allow_everything(stage.person):
        operation = await here.say(Turn("I run it.", "execute_command", {"command": line}))
        await eventually(runs)
    await here.turning.is_turning()

    await here.cancel(operation)

    assert len((await here.doing(operation))["cancelled_calls"]) == 1
    await here.at_rest()


async def test_a_tool_of_another_server_that_ignores_a_cancel_holds_nobody_up(
    here: Scenario, stage: AgentDaemon
) -> None:
    operation = await here.say(Turn("It is stubborn.", "stranger__stubborn"), Turn("Never."))
    await allow_stranger(stage)
    await here.busy(operation, lambda busy: len(busy.of("call")) == 1)
    await here.turning.is_turning()

    await here.cancel(operation)

    await here.at_rest()
    (result,) = [each for each in here.told if each.kind == "result"]
    assert "ancelled" in result.text
    greets = await here.say(Turn("It answers.", "stranger__greet"), Turn("So it does."))
    await allow_stranger(stage)
    assert text_of(await here.ended(greets)) == "It answers.So it does."
    assert [each.text for each in here.told if each.kind == "result"][1] == "Hello from the stranger."
    await here.at_rest()
