"""Waiting until a process is really gone."""

import os
import subprocess
import time
from contextlib import ExitStack

from tests.support.cli_home import BOUND

from handrail.cli.commands.lifecycle import ProcessExit


def test_a_process_that_ends_is_gone_and_one_that_lives_is_not() -> None:
    with subprocess.Popen(["sleep", "600"]) as process, ExitStack() as held:
        gone = ProcessExit(process.pid, held)
        assert gone.wait(time.monotonic() + 0.05) is False
        process.kill()
        assert gone.wait(time.monotonic() + BOUND) is True


def test_a_process_that_was_gone_before_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait(BOUND)
    with ExitStack() as held:
        assert ProcessExit(process.pid, held).wait(time.monotonic() + BOUND) is True
    assert os.getpid() != process.pid
