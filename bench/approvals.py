"""The list of open approvals while 1000 calls wait for an answer."""

import time
from collections.abc import Generator

from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import percentile, time_each

APPROVALS = 1000
READS = 60
OPEN_SECONDS = 120.0
"""Bounds the wait until all approvals are open."""


def measure_list(daemon: Daemon) -> Generator[Figure]:
    outside = daemon.workspace.parent / "outside"  # a write outside of the workspace asks
    outside.mkdir()
    with daemon.connect() as client:
        for number in range(APPROVALS):
            client.begin("write_file", {"path": str(outside / f"{number}.txt"), "content": f"{number}\n"})
        _wait_until_open(daemon)
        samples = time_each(lambda: _check_list(daemon), READS)
    yield Figure(percentile(samples, 0.95) * 1000)


def _check_list(daemon: Daemon) -> None:
    assert len(daemon.get("/api/approvals?open=true")) == APPROVALS


def _wait_until_open(daemon: Daemon) -> None:
    deadline = time.monotonic() + OPEN_SECONDS
    while len(daemon.get("/api/approvals?open=true")) < APPROVALS:
        if time.monotonic() > deadline:
            raise TimeoutError("Not all approvals were opened.")
        time.sleep(0.2)


MEASUREMENTS = (
    Measurement(
        (Line(f"the list of {APPROVALS} open approvals, p95", "ms", Target("at most", 200)),),
        with_daemon(measure_list),
    ),
)
