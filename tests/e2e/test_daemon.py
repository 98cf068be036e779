"""The daemon's own life: ending on purpose, giving way to the next one, and one for each home."""

import hashlib
import json
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.daemon_home import (
    BOUND,
    Home,
    eventually,
    find_processes,
    running_daemon,
    until,
    watch_exit,
)
from tests.support.mcp_client import agent
from tests.support.person_client import Person, person_of

from handrail.store.integrity import verify

PROMISED = 5.0
"""Seconds from SIGTERM to the end of the daemon."""
ANSWERED = 2.0
"""Seconds for an answer while another program floods a terminal: many times what it takes on a busy machine."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_daemon_that_is_told_to_end_leaves_nothing_running_and_a_whole_record(
    home: Home, person: Person, workspace: Path, number: signal.Signals
) -> None:
    command = "echo begun; trap '' TERM HUP; (setsid sleep 64.1111 &); sleep 64.1111; sleep 64.1111"
    async with agent(home, workspace) as client:
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        call = await person.allow("64.1111")
        await until(lambda: len(find_processes("sleep\x0064.1111")) == 2)
        await person.has_printed(call)
        keeper = (await person.get("health"))["keeper"]["pid"]
        with watch_exit(keeper) as keeper_is_gone:
            took = home.signal(home.pid, number)
            assert keeper_is_gone(PROMISED)
        left = find_processes("64.1111")
        told = await asked.told()

    print(f"ended {took:.2f} s after {number.name}")
    assert took < PROMISED
    assert left == []
    assert (told.status, told.call, told.data["output"]) == ("interrupted", call, "begun\n")
    assert not home.places.daemon_json.exists()
    assert unwritten(home) == 0, "everything is in the database itself"
    assert verify(home.places.database, home.places.head).ok
    home.up()
    detail = await person_again(home, call)
    assert detail["status"] == "interrupted"
    assert detail["result"]["data"]["output"] == "begun\n"


def unwritten(home: Home) -> int:
    """Bytes that are only in the write-ahead log."""
    log = Path(f"{home.places.database}-wal")
    return log.stat().st_size if log.exists() else 0


async def person_again(home: Home, call: str) -> dict[str, Any]:
    """A call as the person reads it; the keeper ended, and with it every sign-in."""
    return await person_of(home).call(call)


async def test_a_restart_keeps_terminals_and_approvals(home: Home, person: Person, workspace: Path) -> None:
    async with agent(home, workspace) as client:
        asked_first = client.ask("execute_command", command="echo begun; exec sleep 64.2222")
        first = await person.allow("64.2222")
        await person.has_printed(first)  # to complete what has not begun is to cancel it
        await person.complete(first)
        completed = await asked_first.told()
        command = "while true; do echo tick; sleep 0.0642; done"
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        call = await person.allow("0.0642")
        await person.has_printed(call)
        write = client.ask("write_file", path="kept.txt", content="kept\n")
        question = await person.question("kept.txt")
        before = home.pid
        with watch_exit(before) as gone:
            await person.post("down", keep_terminals=True)
            await until(lambda: gone(0))
        told, write_told = await asked.told(), await write.told()
        still_down = not home.is_ready()
        await client.use("list_calls")
        started = (await person.get("state"))["started"]
        printed = await person.has_printed(call)
        grown = await person.has_printed(call, more_than=printed + 20)
        await person.allow("kept.txt")
        written = await person.settled(question["call_id"])
        after = await person.call(call)
        living = await person.get("terminals", running=True)
        for terminal in living:
            await person.post(f"terminals/{terminal['id']}/close")

    assert still_down, "a daemon that left on purpose comes back when somebody asks"
    assert home.pid != before
    assert (completed.status, completed.data["output"]) == ("force-completed", "begun\n")
    assert (told.status, told.call) == ("running", call), "handed back, because it goes on"
    assert "tick" in told.text, "what there was is told before it leaves"
    assert told.data["terminal_id"] in {terminal["id"] for terminal in living}
    assert (write_told.status, write_told.call) == ("waiting", question["call_id"])
    assert (after["status"], after["client_gone"]) == ("running", False)
    assert started["crashed"] is False
    assert (started["approvals_kept"], started["terminals_adopted"]) == (1, 2)
    assert grown > printed
    assert {terminal["call_id"] for terminal in living} == {first, call}
    assert written["status"] == "done"
    assert (workspace / "kept.txt").read_text() == "kept\n"
    await until(lambda: not find_processes("0.0642") and not find_processes("64.2222"))


async def test_a_removed_lock_file_lets_no_second_daemon_in(home: Home) -> None:
    first = home.pid
    home.places.daemon_lock.unlink()
    second = home.start()

    assert second.wait(BOUND) == 1
    assert f"Another Handrail daemon holds {home.places.state}" in home.said()
    assert home.pid == first


async def test_a_second_daemon_on_the_same_home_refuses_with_a_sentence(shared_home: Home) -> None:
    first = shared_home.pid
    second = shared_home.start()

    assert second.wait(BOUND) == 1
    assert f"Another Handrail daemon holds {shared_home.places.state}" in shared_home.said()
    assert "Traceback" not in shared_home.said()
    assert shared_home.pid == first


def test_a_daemon_whose_port_is_taken_takes_a_free_one() -> None:
    with running_daemon() as home:
        wished, pid = home.port, home.pid
        home.signal(pid, signal.SIGTERM)
        with closing(socket.socket()) as squatter:
            squatter.bind(("127.0.0.1", wished))
            squatter.listen()
            home.up()
            url = home.url
            named = json.loads(home.places.daemon_json.read_text())["url"]

    assert not url.endswith(f":{wished}")
    assert named == url


async def test_a_file_piped_into_a_terminal_keeps_nobody_from_an_answer(home: Home, person: Person) -> None:
    lines = "".join(f"{number}\n" for number in range(1, 20_001))
    command = [sys.executable, "-m", "handrail", "shell", "--", "sh", "-c", "sleep 0.2; sha256sum"]
    waits: list[float] = []
    printed, history = b"", list[dict[str, Any]]()
    async with anyio.create_task_group() as group:
        group.start_soon(ask_on, person, waits)
        with anyio.fail_after(BOUND):
            ran = await anyio.run_process(
                command, input=lines.encode(), env=home.environment, stderr=subprocess.STDOUT
            )
            printed = ran.stdout
            history = await typed_in(person)
        group.cancel_scope.cancel()

    assert hashlib.sha256(lines.encode()).hexdigest().encode() in printed
    print(f"{len(waits)} answers meanwhile, the slowest after {max(waits) * 1000:.0f} ms")
    assert max(waits) < ANSWERED
    assert history[0]["text"].startswith("1\n2\n3\n")
    assert history[0]["text"].endswith(" more lines")
    assert len(history) <= 5, "one, the end of the input, and more only where a busy machine made a pause"


async def ask_on(person: Person, waits: list[float]) -> None:
    """Ask one question after another, and note how long each answer takes."""
    while True:
        began = anyio.current_time()
        await person.get("terminals")
        waits.append(anyio.current_time() - began)


async def typed_in(person: Person) -> list[dict[str, Any]]:
    """What was typed in the only terminal, once any of it is told."""

    async def look() -> list[dict[str, Any]] | None:
        (terminal,) = await person.get("terminals")
        return (await person.get(f"terminals/{terminal['id']}"))["typed"]

    return sorted(await eventually(look), key=lambda entry: entry["offset"])
