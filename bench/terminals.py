"""Many terminals: the loop lag of the daemon while 100 of them print, and the memory of an idle one."""

import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import median

BUSY_TERMINALS = 100
BUSY_SECONDS = 66
"""How long they print: longer than the minute over which the daemon measures its lag."""
BUSY_COMMAND = "until [ -e go ]; do sleep 0.2; done; exec timeout {seconds} yes {number}"
"""All start to print together. Each command differs, because the daemon would join a call equal to a running one."""
IDLE_TERMINALS = 20
IDLE_ROUNDS = 3
SETTLE_SECONDS = 2.0
"""For the shells to read their start-up files."""
MB = 1_000_000


def measure_busy(daemon: Daemon) -> Generator[Figure]:
    with daemon.connect() as client:
        for number in range(BUSY_TERMINALS):
            command = BUSY_COMMAND.format(seconds=BUSY_SECONDS, number=number)
            daemon.call_with_approval(client, "execute_command", {"command": command, "background": True})
        assert len(daemon.get("/api/terminals?running=true")) == BUSY_TERMINALS
        daemon.get("/api/health")  # which has the daemon sample its loop from now on
        (daemon.workspace / "go").touch()
        time.sleep(BUSY_SECONDS - 4)
        lag = float(daemon.get("/api/health")["daemon"]["loop_lag_ms"])
        _wait_until_ended(daemon)
    yield Figure(lag)


def _wait_until_ended(daemon: Daemon) -> None:
    deadline = time.monotonic() + 3 * BUSY_SECONDS
    while daemon.get("/api/terminals?running=true"):
        if time.monotonic() > deadline:
            raise TimeoutError("The terminals did not end.")
        time.sleep(0.1)


def measure_idle(daemon: Daemon) -> Generator[Figure]:
    """The proportional set size (PSS) of all our processes, per terminal: a shared page counts by its share."""
    samples: list[float] = []
    with daemon.connect() as client:
        for _ in range(IDLE_ROUNDS):
            before = _read_total_pss(daemon)
            terminals = [
                client.call("create_tracked_terminal", {"shellPath": "/bin/bash"})["structuredContent"]
                for _ in range(IDLE_TERMINALS)
            ]
            time.sleep(SETTLE_SECONDS)
            samples.append((_read_total_pss(daemon) - before) / IDLE_TERMINALS / MB)
            for terminal in terminals:
                client.call("close_terminal", {"terminalId": terminal["terminal_id"]})
    yield Figure(median(samples))


def _read_total_pss(daemon: Daemon) -> int:
    health = daemon.get("/api/health")
    roots = [health["daemon"]["pid"], health["keeper"]["pid"]]
    return sum(map(_read_pss, {pid for root in roots for pid in _walk_tree(root)}))


def _walk_tree(root: int) -> Iterator[int]:
    yield root
    with suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _walk_tree(int(child))


def _read_pss(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


MEASUREMENTS = (
    Measurement(
        (Line(f"{BUSY_TERMINALS} terminals at once, loop lag p99", "ms", Target("at most", 100)),),
        with_daemon(measure_busy),
    ),
    Measurement(
        (Line("memory (PSS) of an idle terminal", "MB", Target("at most", 6.0)),), with_daemon(measure_idle)
    ),
)
