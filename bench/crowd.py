"""50 clients that call at the same time, 200 calls each, beside a bare server of the SDK.

Both sides are one server process with 50 MCP sessions over HTTP, asked by the same lean clients in one poll loop. The peer
only returns its argument. Ours reads a file of the same size, decides by rules and journals each call. Doors are left out:
a peer on stdio would be 50 processes, which share nothing and get 50 shares of the processor.
"""

import select
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.daemon import Daemon, with_daemon
from bench.file_tools import TEXT, write_fox
from bench.http_client import HttpClient
from bench.line import Figure, Line, Measurement, Target
from bench.samples import ROUNDS, median, percentile

CLIENTS, CALLS = 50, 200
CREDENTIALS = 5
"""Of ours: a credential has at most 32 sessions."""
START_SECONDS = 120.0
ANSWER_SECONDS = 300.0
"""Bounds the wait for the next answer to any client."""
_SERVER = str(Path(__file__).parent / "peers" / "echo_http_server.py")


class Crowd(NamedTuple):
    """The result of many clients."""

    p99: float
    """In milliseconds."""
    rate: float
    """Calls per second."""


def measure_clients(daemon: Daemon) -> Generator[Figure]:
    write_fox(daemon)
    mine: list[Crowd] = []
    others: list[Crowd] = []
    with ExitStack() as stack:
        ours = _connect_ours(stack, daemon)
        port = stack.enter_context(_start_peer())
        peers = [stack.enter_context(closing(HttpClient("127.0.0.1", port))) for _ in range(CLIENTS)]
        for client in (*ours, *peers):
            client.initialize()
        for _ in range(ROUNDS):
            mine.append(call_together(ours, "read_file", {"path": "fox.txt"}, CALLS))
            others.append(call_together(peers, "echo", {"text": TEXT}, CALLS))
    yield Figure(median([crowd.p99 for crowd in mine]), median([crowd.p99 for crowd in others]))
    yield Figure(median([crowd.rate for crowd in mine]), median([crowd.rate for crowd in others]))


def call_together(
    clients: Sequence[HttpClient], tool: str, arguments: Mapping[str, object], times: int
) -> Crowd:
    """Let every client make so many calls, each after its last answer."""
    poll = select.poll()
    by_descriptor: dict[int, HttpClient] = {}
    sent: dict[int, float] = {}
    samples: list[float] = []
    began = time.perf_counter()
    for client in clients:
        client.connect()
        by_descriptor[client.fileno()] = client
        poll.register(client, select.POLLIN)
        sent[client.fileno()] = time.perf_counter()
        client.begin(tool, arguments)
    left = dict.fromkeys(by_descriptor, times)
    while sent:
        for descriptor in _wait_readable(poll):
            client = by_descriptor[descriptor]
            if not client.is_answered():
                continue
            samples.append(time.perf_counter() - sent.pop(descriptor))
            left[descriptor] -= 1
            if left[descriptor]:
                sent[descriptor] = time.perf_counter()
                client.begin(tool, arguments)
            else:
                poll.unregister(descriptor)  # servers close a connection that is idle for seconds
    took = time.perf_counter() - began
    return Crowd(percentile(samples, 0.99) * 1000, len(samples) / took)


def _wait_readable(poll: select.poll) -> list[int]:
    ready = poll.poll(ANSWER_SECONDS * 1000)
    if not ready:
        raise TimeoutError("No client got an answer.")
    return [descriptor for descriptor, _ in ready]


def _connect_ours(stack: ExitStack, daemon: Daemon) -> list[HttpClient]:
    host, _, port = daemon.url.removeprefix("http://").partition(":")
    bearers = [
        daemon.post("/api/credentials", {"name": f"crowd{number}", "workspace": str(daemon.workspace)})[
            "bearer"
        ]
        for number in range(CREDENTIALS)
    ]
    return [
        stack.enter_context(closing(HttpClient(host, int(port), bearers[number % CREDENTIALS])))
        for number in range(CLIENTS)
    ]


@contextmanager
def _start_peer() -> Generator[int]:
    """A bare SDK server; yields its port."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
    process = subprocess.Popen([sys.executable, _SERVER, str(port)], stderr=subprocess.DEVNULL)
    try:
        _wait_listening(port)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait_listening(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("The peer did not start.")


MEASUREMENTS = (
    Measurement(
        (
            Line(f"{CLIENTS} clients with {CALLS} calls each, p99", "ms", Target("times at most", 1.0)),
            Line("… calls per second", "/s", Target("times at least", 1.0)),
        ),
        with_daemon(measure_clients),
    ),
)
