"""A person's Cancel until the client has its result, beside an SDK server whose tool is released by another call."""

import os
import sys
import time
from collections.abc import Generator
from pathlib import Path

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.running_command import start_command
from bench.samples import alternate_medians, percentile

CANCELS = 100
"""In one round."""
_WAIT_SERVER = str(Path(__file__).parent / "peers" / "wait_server.py")


def measure_cancel(daemon: Daemon) -> Generator[Figure]:
    argv = [sys.executable, _WAIT_SERVER]
    with daemon.connect() as client, Client(argv, os.environ, daemon.workspace) as peer:
        peer.initialize()
        ours, theirs = alternate_medians(lambda: _cancel_p99(daemon, client), lambda: _release_p99(peer))
    yield Figure(ours, theirs)


def _cancel_p99(daemon: Daemon, client: Client) -> float:
    return percentile([_time_cancel(daemon, client) for _ in range(CANCELS)], 0.99) * 1000


def _time_cancel(daemon: Daemon, client: Client) -> float:
    command = start_command(daemon, client, "echo begun; sleep 1000; echo never")
    began = time.perf_counter()
    response = command.cancel()
    result = command.wait_for_result()
    took = time.perf_counter() - began
    daemon.receive(response)
    assert result["structuredContent"]["status"] == "cancelled", result
    return took


def _release_p99(peer: Client) -> float:
    return percentile([_time_release(peer) for _ in range(CANCELS)], 0.99) * 1000


def _time_release(peer: Client) -> float:
    waiting = peer.begin("wait", {})
    peer.call("echo", {"text": "the server has read the call of `wait` when it answers this one"})
    began = time.perf_counter()
    peer.begin("release", {})
    peer.answer(waiting)
    return time.perf_counter() - began


MEASUREMENTS = (
    Measurement((Line("Cancel to result p99", "ms", Target("at most", 50.0)),), with_daemon(measure_cancel)),
)
