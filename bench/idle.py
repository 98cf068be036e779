"""An idle daemon: its wake-ups, processor time and memory, and those of its keeper."""

import os
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target

QUIET_SECONDS = 125.0
"""Before the measurement: a request for the health has the daemon sample its loop for two minutes."""
WINDOW_SECONDS = 60.0
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since its start."""

    wake_ups: int
    """Voluntary context switches of all its threads: each follows a wait."""
    seconds: float
    """Processor time."""


def measure_idle(daemon: Daemon) -> Generator[Figure]:
    health = daemon.get("/api/health")
    pids = health["daemon"]["pid"], health["keeper"]["pid"]
    time.sleep(QUIET_SECONDS)
    before = [read_usage(pid) for pid in pids]
    time.sleep(WINDOW_SECONDS)
    after = [read_usage(pid) for pid in pids]
    rates = [(b.wake_ups - a.wake_ups) / WINDOW_SECONDS for a, b in zip(before, after, strict=True)]
    yield Figure(rates[0])
    yield Figure((after[0].seconds - before[0].seconds) / WINDOW_SECONDS * 100)
    yield Figure(rates[1])
    yield Figure(read_rss(pids[0]) / MB)


def read_usage(pid: int) -> Usage:
    """What this process has used so far."""
    tasks = [task / "status" for task in Path(f"/proc/{pid}/task").iterdir()]
    wake_ups = sum(int(_field(task, "voluntary_ctxt_switches")) for task in tasks)
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Usage(wake_ups, (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK"))


def read_rss(pid: int) -> int:
    """The resident memory of this process, in bytes."""
    return int(_field(Path(f"/proc/{pid}/status"), "VmRSS")) * 1024


def _field(path: Path, name: str) -> str:
    line = next(line for line in path.read_text().splitlines() if line.startswith(f"{name}:"))
    return line.split()[1]


MEASUREMENTS = (
    Measurement(
        (
            Line("idle daemon, wake-ups", "/s", Target("at most", 5)),
            Line("… processor time", "%", Target("at most", 0.1)),
            Line("… wake-ups of its keeper", "/s", Target("at most", 0.1)),
            Line("… memory (RSS)", "MB", Target("at most", 85)),
        ),
        with_daemon(measure_idle),
    ),
)
