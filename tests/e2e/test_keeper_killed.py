"""The keeper is killed under a running command: its end is unknown, and nothing of it lives on."""

import os
import signal
from pathlib import Path

import anyio
import pytest
from tests.support.daemon_home import Home, find_processes, until
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person

from handrail.keeper.process_tree import children, name_of


def kill_keeper_and_wardens(keeper: int) -> None:
    """The keeper is stopped first, so that it cannot end the tree of a warden that dies."""
    os.kill(keeper, signal.SIGSTOP)
    for warden in children(keeper):
        assert name_of(warden) in (
            "handrail-warden",
            "handrail-keeper",
        )  # a new one has no name of its own yet
        os.kill(warden, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)


async def test_a_command_whose_keeper_was_killed_is_interrupted_and_not_done(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command="echo begun; sleep 66.1111")
        call = await person.allow("66.1111")
        await person.has_printed(call)
        os.kill((await person.get("health"))["keeper"]["pid"], signal.SIGKILL)
        told = await asked.told()
        record = await person.settled(call)
        await until(lambda: not find_processes("66.1111"))

    assert (told.status, told.is_error, told.call) == ("interrupted", True, call)
    assert "Its end is unknown: The keeper has died" in told.data["message"]
    assert told.data["output"] == "begun\n"
    assert (record["status"], record["message"]) == ("interrupted", told.data["message"])


@pytest.mark.parametrize("daemon_too", [False, True])
async def test_what_outlives_the_keeper_and_its_warden_is_found_and_ended(
    home: Home, person: Person, workspace: Path, daemon_too: bool
) -> None:
    async with agent(home, workspace) as client:
        line = "setsid sleep 66.2222 & sleep 66.2222"
        asked = client.ask("execute_command", command=line)
        call = await person.allow("66.2222")
        await until(lambda: len(find_processes("sleep\x0066.2222")) == 2)
        keeper = (await person.get("health"))["keeper"]["pid"]
        daemon = home.pid
        if daemon_too:
            os.kill(daemon, signal.SIGSTOP)
        kill_keeper_and_wardens(keeper)
        if daemon_too:
            home.signal(daemon, signal.SIGKILL)
        await asked.told()
        told = await client.use("get_call", call_id=call)
        await until(lambda: not find_processes("sleep\x0066.2222"))

    assert told.data["call"]["status"] == "interrupted"


async def test_what_outlives_all_of_them_is_ended_though_its_start_was_not_recorded(
    home: Home, person: Person, workspace: Path
) -> None:
    """The command stops the daemon, before the journal has its terminal."""
    line = "setsid sleep 66.3333 & sleep 66.3333"
    daemon, keeper = home.pid, (await person.get("health"))["keeper"]["pid"]
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command=f"kill -STOP {daemon}; {line}")
        approval = await person.question("66.3333")
        async with anyio.create_task_group() as group:
            group.start_soon(answer_if_it_lives, person, approval)
            await until(lambda: len(find_processes("sleep\x0066.3333")) == 2)
            group.cancel_scope.cancel()
        kill_keeper_and_wardens(keeper)
        home.signal(daemon, signal.SIGKILL)
        await asked.told()
        await until(lambda: not find_processes("sleep\x0066.3333"))


async def answer_if_it_lives(person: Person, approval: Json) -> None:
    """The daemon may be stopped before it acknowledges."""
    await person.answer(approval, "allow")
