"""Processes that outlived their keeper and warden: found by mark and environment, and ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from handrail.keeper.process_tree import children
from handrail.terminal.survivors import end_survivors, find_survivors

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="macOS has no mark"),
]

MARKED = "from handrail.keeper import lineage; lineage.mark(); "
WAITING = "import time; print('up', flush=True); time.sleep(1000)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


@contextmanager
def process(code: str, terminal: str) -> Generator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "HANDRAIL_TERMINAL": terminal}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        try:
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize("how", ["", DEAF])
async def test_a_marked_process_of_a_lost_terminal_is_ended(how: str) -> None:
    with process(MARKED + how + WAITING, "t-lost") as survivor:
        assert find_survivors(["t-lost", "t-other"]) == [survivor.pid]
        assert await end_survivors(["t-lost"], grace=0.2) == 1
        assert survivor.wait(10) == (-signal.SIGKILL if how else -signal.SIGTERM)


async def test_a_process_that_a_warden_still_holds_is_left_to_it() -> None:
    held = (
        "import subprocess, sys; from handrail.keeper import lineage, system; system.set_name('handrail-warden'); "
        f"lineage.mark(); subprocess.run([sys.executable, '-c', {WAITING!r}])"
    )
    with process(held, "t-lost") as warden:
        assert find_survivors(["t-lost"]) == [warden.pid], "it stands for the warden, and has none above it"
        (child,) = children(warden.pid)
        os.kill(child, signal.SIGKILL)


async def test_no_other_process_is_touched() -> None:
    with process(MARKED + WAITING, "t-alive") as other, process(WAITING, "t-lost") as person:
        assert await end_survivors(["t-lost"], grace=0.2) == 0
        assert (other.poll(), person.poll()) == (None, None)
