"""The sentence for a process that does not answer."""

import os
import signal
import subprocess
import sys

import pytest
from tests.support.keeper_terminals import BOUND

from handrail.process_state import describe_hang, read_state

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@linux
def test_a_stopped_process_is_named_with_what_helps() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        said = describe_hang("keeper", process.pid, "Do something.")
        process.kill()
        process.wait(BOUND)
    assert said == (
        f"The keeper (process {process.pid}) does not answer: it is stopped (SIGSTOP); `kill -CONT {process.pid}` lets it "
        "continue. Do something."
    )


def test_of_a_process_that_runs_or_is_gone_no_reason_is_given() -> None:
    assert describe_hang("daemon", os.getpid(), "Wait.").startswith(
        f"The daemon (process {os.getpid()}) does not answer. "
    )
    assert read_state(1 << 30) == ""
