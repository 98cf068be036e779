"""The way to the daemon: what a process that holds a person's bearer does first."""

import ctypes
import subprocess
import sys

import pytest
from tests.cli.scene import BOUND, SRC

from handrail.cli.failure import Failure
from handrail.cli.link import Link

DUMPABLE = """
import ctypes
from handrail.cli import link
from handrail.cli.failure import Failure
try:
    with link.reach("{want}"):
        pass
except Failure:
    print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such flag")
@pytest.mark.parametrize(("want", "dumpable"), [("person", "0"), ("read", "1")])
def test_a_person_is_hidden_from_other_processes_before_a_bearer_is_had(
    want: str, dumpable: str, home: object
) -> None:
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 1  # or the comparison means nothing
    done = subprocess.run(
        [sys.executable, "-c", DUMPABLE.format(want=want)],
        env={"PYTHONPATH": str(SRC), "HANDRAIL_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    assert done.stdout.strip() == dumpable


def test_a_daemon_that_went_away_is_told_as_such() -> None:
    gone = Link(url="http://127.0.0.1:1", pid=1, version="0", bearer="none")
    with pytest.raises(Failure) as failure:
        gone.get("state")
    assert failure.value.code == 3
    assert "`handrail up`" in str(failure.value)
