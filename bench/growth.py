"""A large journal: start, lists and new calls beside an empty home; memory after many calls; many clients (`crowd`).

The large journal has a million events of 100,000 calls (`journal_generator`). It is generated once and kept under `build/`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from bench import crowd
from bench.client import Client
from bench.daemon import Daemon, make_home, run_daemon, with_daemon
from bench.file_tools import TEXT, time_reads, write_fox
from bench.line import Figure, Line, Measurement, Target
from bench.samples import alternate, alternate_medians, median, percentile, time_each, time_p50

EVENTS, CALLS = 1_000_000, 100_000
GENERATE_SECONDS = 3600.0
READS = 60
"""Requests for lists, over all filters."""
NEW_CALLS, NEW_ROUNDS = 50, 25
"""Calls in one round, and rounds: short turns, so that both sides see the same machine."""
FILTERS = (
    "limit=50",
    "limit=200",
    "status=failed",
    "status=running",
    "tool=write_file",
    "agent=zed",
    "agent=zed&status=failed&tool=execute_command",
    "status=cancelled&tool=read_file",
    "q=module7",
    "q=no+such+words",
    "q=nowhere",
    "before=500000",
)
"""As the page and the command line ask: by status, tool, agent and words, and page by page."""
WARM_UP, MANY = 2000, 10_000
WINDOW = 32
"""Open calls of the client that makes many."""
SETTLE_SECONDS = 5.0
_ROOT = Path(__file__).parents[1]


class Usage(NamedTuple):
    """Of a process."""

    rss: int
    descriptors: int


def measure_start() -> Generator[Figure]:
    data = load_journal()
    with make_home(data) as large, make_home() as empty:
        for home in (large, empty):
            _time_start(home)  # the first one migrates, and creates what is missing
        ours, peer = alternate_medians(lambda: _time_start(large), lambda: _time_start(empty))
    size = (data / "handrail.db").stat().st_size
    index = (data / "words.db").stat().st_size
    per_call = f"{size / CALLS / 1000:.1f} kB per call, {index / CALLS / 1000:.1f} kB more for the search"
    yield Figure(ours, peer, note=f"{EVENTS // CALLS} events and {per_call}")


def measure_lists() -> Generator[Figure]:
    with make_home(load_journal()) as home, run_daemon(home) as daemon:
        filters = cycle(FILTERS)
        samples = time_each(lambda: daemon.get(f"/api/calls?{next(filters)}"), READS)
    slowest = max(zip(samples, cycle(FILTERS), strict=False))
    yield Figure(percentile(samples, 0.95) * 1000, note=f"slowest: {slowest[1]}, {slowest[0] * 1000:.0f} ms")


def measure_new_calls() -> Generator[Figure]:
    with ExitStack() as stack:
        homes = [stack.enter_context(make_home(data)) for data in (load_journal(), None)]
        daemons = [stack.enter_context(run_daemon(home)) for home in homes]
        for daemon in daemons:
            write_fox(daemon)
        clients = [stack.enter_context(daemon.connect()) for daemon in daemons]
        for time_calls in (time_reads, _time_writes):
            yield _compare(*alternate(*(_timer(client, time_calls) for client in clients), rounds=NEW_ROUNDS))


def measure_many_calls(daemon: Daemon) -> Generator[Figure]:
    write_fox(daemon)
    pid = daemon.get("/api/health")["daemon"]["pid"]
    with daemon.connect() as client:
        read_many(client, WARM_UP)
        before = read_usage(pid)
        read_many(client, MANY)
        after = read_usage(pid)
    yield Figure(after.rss / 1e6, before.rss / 1e6)
    yield Figure(after.descriptors, before.descriptors)


def load_journal() -> Path:
    """The folder with the large journal; generated where it is missing."""
    folder = _ROOT / "build" / f"growth-{EVENTS}-{CALLS}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        argv = [sys.executable, "-m", "bench.journal_generator", str(unfinished), str(EVENTS), str(CALLS)]
        subprocess.run(argv, cwd=_ROOT, check=True, timeout=GENERATE_SECONDS, stdout=subprocess.DEVNULL)
        unfinished.rename(folder)
    return folder


def read_many(client: Client, times: int) -> None:
    client.call_pipelined("read_file", {"path": "fox.txt"}, times, WINDOW)


def read_usage(pid: int) -> Usage:
    time.sleep(SETTLE_SECONDS)
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    descriptors = len([*Path(f"/proc/{pid}/fd").iterdir()])
    return Usage(int(fields[1]) * os.sysconf("SC_PAGE_SIZE"), descriptors)


def _time_start(home: Path) -> float:
    """The milliseconds until the daemon has answered two requests of a person."""
    began = time.perf_counter()
    with run_daemon(home):
        return (time.perf_counter() - began) * 1000


def _timer(client: Client, time_calls: Callable[[Client, int], float]) -> Callable[[], float]:
    return lambda: time_calls(client, NEW_CALLS)


def _time_writes(client: Client, times: int) -> float:
    """The p50 of write_file, in milliseconds."""
    contents = (f"{number}\n{TEXT}" for number in range(times))
    return (
        time_p50(lambda: client.call("write_file", {"path": "new.txt", "content": next(contents)}), times)
        * 1000
    )


def _compare(ours: Sequence[float], peer: Sequence[float]) -> Figure:
    """The medians, and the median ratio of neighbours."""
    ratio = median([mine / other for mine, other in zip(ours, peer, strict=True)])
    return Figure(median(ours), median(peer), ratio=ratio)


MEASUREMENTS = (
    Measurement(
        (Line(f"start with {EVENTS} events; empty", "ms", Target("at most", 1500)),),
        measure_start,
        GENERATE_SECONDS,
    ),
    Measurement(
        (Line(f"lists and filters of {CALLS} calls, p95", "ms", Target("at most", 100)),), measure_lists
    ),
    Measurement(
        (
            Line(f"read_file after {CALLS} calls; empty", "ms", Target("times at most", 1.1)),
            Line("… write_file", "ms", Target("times at most", 1.1)),
        ),
        measure_new_calls,
    ),
    Measurement(
        (
            Line(f"memory after {MANY} calls; before", "MB", Target("times at most", 1.05)),
            Line("… descriptors", "", Target("times at most", 1.05)),
        ),
        with_daemon(measure_many_calls),
    ),
    *crowd.MEASUREMENTS,
)
