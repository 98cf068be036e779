"""A headless client that is interrupted while one of our tools runs: the call ends with it, and so does its command."""

import os
import signal
from collections.abc import Callable

import anyio
import pytest
from tests.real_clients.client_catalog import COPILOT, GEMINI, QWEN
from tests.real_clients.guarded_client import GuardedClient
from tests.support.daemon_home import find_processes, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ENDED_SECONDS = 5.0
"""How long the command may run on."""
GROUP = ("its group", os.killpg, "301.25")
ALONE = ("it alone", os.kill, "302.25")
CASES = (
    (GEMINI, GROUP),
    (GEMINI, ALONE),
    (QWEN, GROUP),
    (QWEN, ALONE),
    (COPILOT, GROUP),
    (COPILOT, ALONE),
)


@pytest.mark.parametrize(
    ("client", "interrupt", "seconds"),
    [
        pytest.param(
            client,
            interrupt,
            seconds,
            id=f"{client.name}-{name}",
            marks=() if (client, name) == (GEMINI, GROUP[0]) else pytest.mark.all_clients,
        )
        for client, (name, interrupt, seconds) in CASES
    ],
    indirect=["client"],
)
async def test_a_running_call_is_cancelled_when_its_client_is_interrupted(
    guarded: GuardedClient, interrupt: Callable[[int, int], None], seconds: str
) -> None:
    """A terminal interrupts the whole group of the client, our door included; a script only the client.

    Qwen's and Copilot's wrapper then dies alone, and their program goes on and holds our door's pipe: only the door
    notices. Gemini is one process here and closes the pipe.
    """
    turn = guarded.client.ours("execute_command", {"command": f"sleep {seconds}"})
    argv = f"sleep\0{seconds}"
    async with guarded.running(turn, arguments=guarded.client.asks_nobody) as run:
        call = await guarded.person.allow(f"sleep {seconds}")
        await until(lambda: bool(find_processes(argv)))
        assert (await guarded.person.call(call))["status"] == "running"
        with anyio.fail_after(ENDED_SECONDS):
            interrupt(run.process.pid, signal.SIGINT)
            record = await guarded.person.stopped(call)
            await until(lambda: not find_processes(argv))
        assert (record["status"], record["by"]) == ("cancelled", "client"), run.text
