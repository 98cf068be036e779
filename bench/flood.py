"""Hostile clients: calls whose answers are not read, and sessions that are not closed, over doors and over HTTP.

Three lines each: the growth of the daemon's memory, its memory ten seconds after the client left, and the small reads of
another client meanwhile. Its reads are compared with those before and after the flood.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.flooder import CALLS
from bench.line import Figure, Line, Measurement, Target
from bench.process_memory import read_rss, sample_memory
from bench.samples import percentile

MB = 1_000_000
GROWTH_MB = 64
CONNECTIONS = 120
"""That share the calls."""
SESSIONS = 10_000
WARM_READS = 1500
WARM_LISTS = 300
"""Calls before the base is taken: the MCP SDK is imported, and the journal's and the database's caches are filled."""
READS = 500
POLL_SECONDS = 0.05
RETURN_SECONDS = 10.0
"""The time after the client's end within which memory must be back."""
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Attack:
    """What the flooder does, and how often."""

    title: str
    kind: str
    count: int

    @property
    def is_over_http(self) -> bool:
        return self.kind.startswith("http")


ATTACKS = (
    Attack(f"{CALLS:,} calls, answers unread, by one door", "door-calls", 1),
    Attack(f"{CALLS:,} calls, answers unread, by {CONNECTIONS} doors", "door-calls", CONNECTIONS),
    Attack(f"{CALLS:,} calls, answers unread, by one HTTP connection", "http-calls", 1),
    Attack(f"{CALLS:,} calls, answers unread, by {CONNECTIONS} HTTP connections", "http-calls", CONNECTIONS),
    Attack(f"{SESSIONS:,} sessions, left open, over doors", "door-sessions", SESSIONS),
    Attack(f"{SESSIONS:,} sessions, left open, over HTTP", "http-sessions", SESSIONS),
)


def measure_attack(attack: Attack, daemon: Daemon) -> Generator[Figure]:
    (daemon.workspace / "fox.txt").write_text("The quick brown fox jumps over the lazy dog.\n")
    with daemon.connect() as client:
        _warm_up(client)
        quiet = _read_while(client, READS)
        pid = daemon.get("/api/health")["daemon"]["pid"]
        base = read_rss(pid)
        with sample_memory(lambda: read_rss(pid), POLL_SECONDS) as rss:
            with _start_flooder(attack, daemon) as flooder:
                reads = _read_while(client, READS, lambda: flooder.poll_taken() is None)
            time.sleep(RETURN_SECONDS)
        after = read_rss(pid)
        quiet += _read_while(client, READS)
    yield Figure((max(rss) - base) / MB, note=f"{flooder.poll_taken():,} taken")
    yield Figure(after / MB, base / MB)
    yield Figure(percentile(reads, 0.95) * 1000, percentile(quiet, 0.95) * 1000)


def _warm_up(client: Client) -> None:
    _read_while(client, WARM_READS)
    for _ in range(WARM_LISTS):
        client.call("list_calls", {})


def _read_while(client: Client, times: int, is_going_on: Callable[[], bool] = lambda: False) -> list[float]:
    """The seconds of each small read: so many, and more while something goes on."""
    samples: list[float] = []
    while len(samples) < times or is_going_on():
        began = time.perf_counter()
        client.call("read_file", {"path": "fox.txt"})
        samples.append(time.perf_counter() - began)
    return samples


class Flooder:
    """A running flood."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._taken: int | None = None
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def poll_taken(self) -> int | None:
        """The requests or sessions that the daemon took, once the flood can send no more."""
        return self._taken

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._taken = json.loads(line)["taken"] if line else 0


@contextmanager
def _start_flooder(attack: Attack, daemon: Daemon) -> Generator[Flooder]:
    if attack.is_over_http:
        body = {"name": "flooder", "workspace": str(daemon.workspace)}
        target = [daemon.url.removeprefix("http://"), daemon.post("/api/credentials", body)["bearer"]]
    else:
        target = [json.loads((daemon.home / "daemon.json").read_text())["socket"]]
    argv = [sys.executable, "-m", "bench.flooder", attack.kind, str(attack.count), *target]
    process = subprocess.Popen(argv, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        flooder = Flooder(process)
        try:
            yield flooder
        finally:
            flooder.end()


MEASUREMENTS = tuple(
    Measurement(
        (
            Line(f"{attack.title}: daemon RSS growth", "MB", Target("at most", GROWTH_MB)),
            Line(f"{attack.title}: RSS {RETURN_SECONDS:.0f} s later", "MB", Target("times at most", 1.1)),
            Line(f"{attack.title}: others' p95", "ms", Target("times at most", 2)),
        ),
        with_daemon(partial(measure_attack, attack)),
    )
    for attack in ATTACKS
)
