"""The demo's MCP client behind a real door."""

import os
import signal

import anyio
import pytest
from tests.support.cli_home import BOUND, SRC, Home

from handrail.demo.mcp_client import DoorClosed, open_door

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.fixture(autouse=True)
def _found_by_doors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SRC))


async def test_many_requests_at_once_get_each_its_own_answer(alone: Home) -> None:
    for number in range(5):
        (alone.workspace / f"{number}.txt").write_text(f"this is {number}\n")
    texts: dict[int, str] = {}

    with anyio.fail_after(BOUND):
        async with open_door(alone.workspace) as client, anyio.create_task_group() as group:

            async def read(number: int) -> None:
                texts[number] = (await client.call("read_file", path=f"{number}.txt")).text

            for number in range(5):
                group.start_soon(read, number)

    assert all(f"this is {number}" in texts[number] for number in range(5))


async def test_a_tool_that_is_not_there_is_a_failure_and_no_crash(alone: Home) -> None:
    with anyio.fail_after(BOUND):
        async with open_door(alone.workspace) as client:
            reply = await client.call("no_such_tool")
    assert reply.status == "failed"


async def test_a_door_that_is_killed_is_told_to_whoever_waits(alone: Home) -> None:
    with anyio.fail_after(BOUND):
        async with open_door(alone.workspace) as client:
            os.kill(client.pid, signal.SIGKILL)
            with pytest.raises(DoorClosed):
                await client.call("list_files")
