"""A gigabyte through a terminal, beside a bare read loop; and how the daemon feels meanwhile."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from bench.client import Client
from bench.figures import ROUNDS, Line, Target, median
from bench.peers.pty_child import PtyChild
from bench.peers.recorders import script_rate, tmux_rate
from bench.stage import Stage

SIZE = 1_000_000_000
MB = 1_000_000
LOOK_SECONDS = 0.2
"""Between two looks at the daemon's memory."""
COMMAND = f"exec head -c {SIZE} /dev/zero"
"""The fastest producer at hand, without newlines, which a terminal would have to look at."""


def run(stage: Stage) -> list[Line]:
    rounds: list[tuple[float, float, float, float]] = []
    with stage.client() as client:
        for _ in range(ROUNDS):
            rate, growth, lag = _through(stage, client)
            rounds.append((rate, _bare(), growth, lag))
    ours, peer, growth, lag = (median([each[column] for each in rounds]) for column in range(4))
    script, tmux = (median([rate(SIZE // 10) for _ in range(ROUNDS)]) for rate in (script_rate, tmux_rate))
    return [
        Line(
            what="1 GB through a PTY",
            ours=ours,
            peer=peer,
            unit="MB/s",
            target=Target("times at least", 0.85),
            note=f"`script` records {script:.0f} MB/s, tmux's `pipe-pane` {tmux:.0f} MB/s",
        ),
        Line(what="… daemon RSS growth", ours=growth, peer=None, unit="MB", target=Target("at most", 64)),
        Line(what="… daemon loop lag p99", ours=lag, peer=None, unit="ms", target=Target("at most", 50)),
    ]


def _through(stage: Stage, client: Client) -> tuple[float, float, float]:
    before = _resident(stage)
    with _watched(stage) as seen:
        request = client.begin("execute_command", {"command": COMMAND, "wait_seconds": 600})
        asked = stage.asked()
        began = time.perf_counter()
        stage.allow(asked)
        result = client.answer(request)
        took = time.perf_counter() - began
    assert result["structuredContent"]["output_bytes"] == SIZE, result
    lag = stage.get("/api/health")["daemon"]["loop_lag_ms"]
    return SIZE / MB / took, (max(*seen, _resident(stage)) - before) / MB, lag


def _bare() -> float:
    began = time.perf_counter()
    count = PtyChild(COMMAND).drain()
    took = time.perf_counter() - began
    assert count == SIZE, count
    return SIZE / MB / took


def _resident(stage: Stage) -> float:
    return float(stage.get("/api/health")["daemon"]["rss_bytes"])


@contextmanager
def _watched(stage: Stage) -> Generator[list[float]]:
    """The daemon's memory, looked at now and then until the block ends."""
    seen = [_resident(stage)]
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            seen.append(_resident(stage))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
