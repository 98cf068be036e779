"""1 GB of output through a terminal, beside a bare read loop; and the daemon's memory and loop lag meanwhile."""

import time
from collections.abc import Generator

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.peers.pty_child import PtyChild
from bench.peers.recorders import script_rate, tmux_rate
from bench.process_memory import sample_memory
from bench.samples import ROUNDS, median

SIZE = 1_000_000_000
MB = 1_000_000
POLL_SECONDS = 0.2
"""Between two reads of the daemon's memory."""
COMMAND = f"exec head -c {SIZE} /dev/zero"
"""The fastest producer at hand, without newlines, which a terminal would have to convert."""


def measure_storm(daemon: Daemon) -> Generator[Figure]:
    rounds: list[tuple[float, ...]] = []
    with daemon.connect() as client:
        for _ in range(ROUNDS):
            ours, growth, lag = _run_command(daemon, client)
            rounds.append((ours, _read_child(), growth, lag, script_rate(SIZE // 10), tmux_rate(SIZE // 10)))
    ours, peer, growth, lag, script, tmux = (median(column) for column in zip(*rounds, strict=True))
    yield Figure(ours, peer, f"`script` records {script:.0f} MB/s, tmux's `pipe-pane` {tmux:.0f} MB/s")
    yield Figure(growth)
    yield Figure(lag)


def _run_command(daemon: Daemon, client: Client) -> tuple[float, float, float]:
    """MB per second, growth of the daemon's memory in MB, and its loop lag in ms."""
    before = _read_rss(daemon)
    with sample_memory(lambda: _read_rss(daemon), POLL_SECONDS) as samples:
        request = client.begin("execute_command", {"command": COMMAND, "wait_seconds": 600})
        approval = daemon.wait_for_approval()
        began = time.perf_counter()
        daemon.allow(approval)
        result = client.answer(request)
        took = time.perf_counter() - began
    assert result["structuredContent"]["output_bytes"] == SIZE, result
    lag = daemon.get("/api/health")["daemon"]["loop_lag_ms"]
    return SIZE / MB / took, (max(*samples, _read_rss(daemon)) - before) / MB, lag


def _read_child() -> float:
    began = time.perf_counter()
    count = PtyChild(COMMAND).drain()
    took = time.perf_counter() - began
    assert count == SIZE, count
    return SIZE / MB / took


def _read_rss(daemon: Daemon) -> float:
    return float(daemon.get("/api/health")["daemon"]["rss_bytes"])


MEASUREMENTS = (
    Measurement(
        (
            Line("1 GB through a PTY", "MB/s", Target("times at least", 0.9)),
            Line("… daemon RSS growth", "MB", Target("at most", 64)),
            Line("… daemon loop lag p99", "ms", Target("at most", 50)),
        ),
        with_daemon(measure_storm),
    ),
)
