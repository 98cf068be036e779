"""kill -9 of the daemon: what ran is interrupted, what waited waits on, and nothing runs twice."""

import time
from pathlib import Path

import anyio
from tests.support.daemon_home import BOUND, Home, find_processes, until
from tests.support.mcp_client import Agent, agent
from tests.support.person_client import Person

READY_AGAIN = BOUND
"""Seconds; two are promised on a quiet machine, and the figure is printed. This one is only reached by a fault."""

TICKING = "echo ran >> ran; i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.05; done"


async def test_a_killed_daemon_comes_back_with_its_approvals_its_terminals_and_its_record(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        running = client.ask("execute_command", command=TICKING, wait_seconds=50)
        command = await person.allow("tick")
        printed = await person.has_printed(command)
        waiting = client.ask("write_file", path="kept.txt", content="written once\n")
        question = await person.question("kept.txt")

        killed = home.kill()
        began = time.monotonic()
        cut = await running.told()
        write_cut = await waiting.told()
        told = await client.use("get_call", call_id=command)
        took = time.monotonic() - began

        state = await person.get("state")
        detail = await person.call(command)
        grown = await person.has_printed(command, more_than=printed + 50)
        asked = await person.question("kept.txt")
        (await person.answer(asked, "allow")).raise_for_status()
        written = await person.settled(question["call_id"])
        twice = await person.answer(asked, "allow")
        outcome = await client.use("wait_for_call", call_id=question["call_id"])

    print(f"ready again {took:.2f} s after the kill")
    assert took < READY_AGAIN
    assert home.pid != killed
    assert (cut.status, cut.is_error, cut.call) == ("interrupted", True, command)
    assert command in cut.text
    assert (write_cut.status, write_cut.call) == ("interrupted", question["call_id"])

    assert told.data["call"]["status"] == "interrupted"
    assert "tick 1" in told.data["call"]["result"]["output"]
    assert "tick 1" in told.text
    assert (detail["status"], detail["by"], detail["terminal_running"]) == ("interrupted", "handrail", True)
    assert grown > printed

    found = state["started"]
    assert found["crashed"] is True
    assert (found["interrupted"], found["approvals_kept"], found["terminals_adopted"]) == (1, 1, 1)

    assert asked["id"] == question["id"]
    assert asked["digest"] == question["digest"]
    assert asked["client_gone"] is True
    assert (written["status"], written["client_gone"]) == ("done", True)
    assert outcome.data["call"]["status"] == "done"
    assert twice.status_code == 409
    assert (workspace / "kept.txt").read_text() == "written once\n"
    assert (workspace / "ran").read_text() == "ran\n", "nothing runs twice"


async def test_a_terminal_that_outlived_a_daemon_is_ended_by_the_next_one(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command="sleep 62.1111 & setsid sleep 62.1111; true")
        call = await person.allow("62.1111")
        await until(lambda: len(find_processes("sleep\x0062.1111")) == 2)
        home.kill()
        await asked.told()
        await client.use("list_calls")
        (terminal,) = await person.get("terminals", running=True)
        await person.post(f"terminals/{terminal['id']}/close")

    assert terminal["call_id"] == call
    assert terminal["running"] is True
    await until(lambda: not find_processes("62.1111"))


async def test_a_command_that_kills_the_daemon_at_once_is_found_all_the_same(
    home: Home, person: Person, workspace: Path
) -> None:
    command = f"kill -9 {home.pid}; echo still here; exec sleep 62.3333"
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command=command)
        call = await person.allow("62.3333")
        told = await asked.told()
        later = await client.use("get_call", call_id=call)
        (terminal,) = await person.get("terminals", running=True)
        await person.post(f"terminals/{terminal['id']}/close")

    assert told.status == "interrupted"
    assert later.data["call"]["status"] == "interrupted"
    assert (terminal["call_id"], terminal["name"]) == (call, command)
    assert later.data["call"]["result"]["output"] == "still here\n"
    await until(lambda: not find_processes("62.3333"))


async def test_a_call_that_was_handed_back_before_the_kill_says_what_became_of_it(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command="echo begun; exec sleep 62.2222", background=True)
        call = await person.allow("62.2222")
        await asked.told()
        await person.has_printed(call)
        home.kill()
        told = await client.use("wait_for_call", call_id=call)
        again = client.ask("execute_command", command="echo begun; exec sleep 62.2222", background=True)
        question = await person.question("62.2222")
        await person.cancel(question["call_id"])
        await again.told()

    assert told.data["call"]["status"] == "interrupted"
    assert told.data["call"]["result"]["output"] == "begun\n"
    assert question["call_id"] != call, "asking anew asks the person anew"


async def test_many_doors_find_one_daemon_after_a_kill(home: Home, person: Person, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("line one\n")
    contents: list[str] = []
    async with (
        agent(home, workspace) as one,
        agent(home, workspace) as two,
        agent(home, workspace) as three,
        anyio.create_task_group() as group,
    ):
        home.kill()

        async def read(client: Agent) -> None:
            told = await client.use("read_file", path="notes.txt")
            contents.append(told.data["content"])

        for client in (one, two, three):
            group.start_soon(read, client)

    assert contents == ["line one\n"] * 3
    events = (await person.get("events", after=0))["entries"]
    assert [entry["event"]["kind"] for entry in events].count("DaemonStarted") == 2
