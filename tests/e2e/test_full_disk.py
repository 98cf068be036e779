"""A full disk: every door gives the reason, nothing runs, and what ended meanwhile is on record when there is space."""

from pathlib import Path

import pytest
from tests.support.daemon_home import Home, find_processes, until
from tests.support.gate_world import full_disk
from tests.support.mcp_client import Generation, Transport, agent
from tests.support.person_client import Person


@pytest.mark.parametrize(
    ("transport", "generation"), [("stdio", "legacy"), ("http", "legacy"), ("http", "2026-07-28")]
)
async def test_every_door_gives_the_reason_for_reads_and_commands(
    shared_home: Home,
    shared_person: Person,
    workspace: Path,
    transport: Transport,
    generation: Generation,
) -> None:
    (workspace / "a.txt").write_text("hello\n")
    async with agent(
        shared_home, workspace, shared_person, transport=transport, generation=generation
    ) as client:
        with full_disk(shared_home.places.database.parent):
            read = await client.use("read_file", path="a.txt")
            run = await client.use("execute_command", command="touch ran")
        again = await client.use("read_file", path="a.txt")

    for told in (read, run):
        assert (told.status, told.is_error) == ("failed", True)
        assert "disk full" in told.text
        assert "nothing was run" in told.text
    assert again.data["content"] == "hello\n"
    assert not (workspace / "ran").exists()


async def test_a_command_that_ended_on_a_full_disk_is_settled_when_there_is_space(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command="until test -e go; do sleep 0.0655; done; exit 5")
        call = await person.allow("0.0655")
        await until(lambda: bool(find_processes("0.0655")))
        with full_disk(home.places.database.parent):
            (workspace / "go").touch()
            told = await asked.told()
            meanwhile = await person.call(call)
        settled = await person.settled(call)
        stopped = await person.stopped(call)
        running = await person.get("terminals", running=True)

    assert told.status == "interrupted"
    assert "disk full" in told.text
    assert meanwhile["status"] == "running"
    assert (settled["status"], settled["result"]["data"]["exit_code"]) == ("done", 5)
    assert stopped["status"] == "done"
    assert running == []
