"""Start of the door (`handrail mcp`) until it has listed its tools, beside an SDK server with one tool."""

import os
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import alternate_medians, median

STARTS = 5
"""In one round."""
_ECHO_SERVER = str(Path(__file__).parent / "peers" / "echo_server.py")


def measure_start(daemon: Daemon) -> Generator[Figure]:
    def start_peer() -> Client:
        return Client([sys.executable, _ECHO_SERVER], os.environ, daemon.workspace)

    ours, peer = alternate_medians(
        lambda: time_starts(daemon.start_door, STARTS), lambda: time_starts(start_peer, STARTS)
    )
    yield Figure(ours, peer)


def time_starts(start: Callable[[], Client], times: int) -> float:
    """The median, in milliseconds, from the launch of a server until it has listed its tools."""
    return median([_time_start(start) for _ in range(times)]) * 1000


def _time_start(start: Callable[[], Client]) -> float:
    began = time.perf_counter()
    with start() as client:
        client.initialize()
        tools = client.ask("tools/list", {})["tools"]
        took = time.perf_counter() - began
    assert tools
    return took


MEASUREMENTS = (
    Measurement(
        (Line("door start to tool list", "ms", Target("times at most", 0.08)),), with_daemon(measure_start)
    ),
)
