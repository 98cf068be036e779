"""A daemon that is killed while a client is connected: the time until the next daemon, which the door starts, is ready."""

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from typing import Any

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.file_tools import time_reads, write_fox
from bench.line import Figure, Line, Measurement, Target
from bench.samples import median

KILLS = 7
READY_SECONDS = 60.0
"""Bounds the wait for the next daemon."""


def measure_restart(daemon: Daemon) -> Generator[Figure]:
    """Each kill has a new client: a door that loses one daemon after the other waits longer and longer, on purpose."""
    write_fox(daemon)
    rounds: list[tuple[float, float]] = []
    for _ in range(KILLS):
        with daemon.connect() as client:
            rounds.append(_time_restart(daemon, client))
    about = _read_about(daemon)
    os.kill(about["pid"], signal.SIGTERM)
    ready, answered = (median(column) * 1000 for column in zip(*rounds, strict=True))
    yield Figure(ready, note=f"a client that was connected has its next answer after {answered:.0f} ms")


def _time_restart(daemon: Daemon, client: Client) -> tuple[float, float]:
    """Seconds from the kill until the next daemon answers over HTTP, and until it answers the client's next call."""
    time_reads(client, 3)
    killed = _read_about(daemon)["pid"]
    began = time.perf_counter()
    os.kill(killed, signal.SIGKILL)
    request = client.begin("read_file", {"path": "fox.txt"})
    ready = _wait_ready(daemon, killed, began)
    client.answer(request)
    return ready - began, time.perf_counter() - began


def _wait_ready(daemon: Daemon, killed: int, began: float) -> float:
    while time.perf_counter() < began + READY_SECONDS:
        try:
            about = _read_about(daemon)
            if about["pid"] != killed and _answers(about["url"]):
                return time.perf_counter()
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(0.005)
    raise TimeoutError("No daemon came after the kill.")


def _read_about(daemon: Daemon) -> dict[str, Any]:
    return json.loads((daemon.home / "daemon.json").read_text())


def _answers(url: str) -> bool:
    """Whether the web server answers: with a refusal, as nobody is signed in."""
    try:
        urllib.request.urlopen(f"{url}/api/health", timeout=1)
    except urllib.error.HTTPError:
        return True
    return True


MEASUREMENTS = (
    Measurement(
        (Line("ready again after kill -9", "ms", Target("at most", 800)),), with_daemon(measure_restart)
    ),
)
