"""read_file and write_file through the gate and the journal, beside servers of the SDK.

A read needs no sync of the disk; its peer is a bare echo. A write is recorded durably before and after its effect; its peer
writes the same file between two durable commits. All are asked by a lean client, which shows the servers without the
client's cost, and by the SDK's client, as an agent would.
"""

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import ROUNDS, median, percentile, time_each, time_p50

CALLS = 200
"""In one round."""
TEXT = "The quick brown fox jumps over the lazy dog, again.\n" * 20
"""About a kilobyte: a small source file."""
_ROOT = Path(__file__).parents[1]

Arguments = Callable[[int], dict[str, str]]
"""The arguments of the nth call."""
Rounds = list[list[tuple[list[float], list[float]]]]
"""For each side, for each round: the milliseconds of its calls with the lean client and with the SDK's."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one side: the tool, its arguments, and the server's command line."""

    tool: str
    arguments: Arguments
    argv: Sequence[str]


def measure_read(daemon: Daemon) -> Generator[Figure]:
    write_fox(daemon)
    ours = Calls("read_file", lambda _number: {"path": "fox.txt"}, daemon.door_argv)
    echo = Calls("echo", lambda _number: {"text": TEXT}, _peer_argv("echo_server.py"))
    rounds = anyio.run(_measure_rounds, daemon, ours, echo)
    for client in (0, 1):
        yield _compare(rounds, client, 0.5)


def measure_write(daemon: Daemon) -> Generator[Figure]:
    peer_file = str(daemon.workspace / "peer.txt")
    database = str(daemon.workspace.parent / "commits.db")  # the same disk as the journal's
    ours = Calls(
        "write_file", lambda number: {"path": "ours.txt", "content": _text(number)}, daemon.door_argv
    )
    peer = Calls(
        "write", lambda number: {"text": _text(number)}, _peer_argv("commit_server.py", database, peer_file)
    )
    rounds = anyio.run(_measure_rounds, daemon, ours, peer)
    for client, share in ((0, 0.5), (0, 0.99), (1, 0.5)):
        yield _compare(rounds, client, share)


def _compare(rounds: Rounds, client: int, share: float) -> Figure:
    """The median of the rounds' percentile, for our side and for the peer."""
    ours, peer = (median([percentile(clients[client], share) for clients in column]) for column in rounds)
    return Figure(ours, peer)


def write_fox(daemon: Daemon) -> None:
    (daemon.workspace / "fox.txt").write_text(TEXT)


def time_reads(client: Client, times: int) -> float:
    """The p50 of read_file, in milliseconds, with the lean client."""
    return time_p50(lambda: client.call("read_file", {"path": "fox.txt"}), times) * 1000


def _text(number: int) -> str:
    return f"{number}\n{TEXT}"


def _peer_argv(program: str, *arguments: str) -> list[str]:
    return [sys.executable, str(_ROOT / "bench" / "peers" / program), *arguments]


async def _measure_rounds(daemon: Daemon, *sides: Calls) -> Rounds:
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**daemon.env, "PYTHONPATH": path}
    columns: Rounds = [[] for _ in sides]
    async with AsyncExitStack() as sessions:
        with ExitStack() as clients:
            lean = [clients.enter_context(Client(side.argv, env, daemon.workspace)) for side in sides]
            for client in lean:
                client.initialize()
            sdk = [
                await sessions.enter_async_context(_open_session(side.argv, env, daemon.workspace))
                for side in sides
            ]
            for _ in range(ROUNDS):
                for column, side, client, session in zip(columns, sides, lean, sdk, strict=True):
                    column.append((_time_lean(client, side), await _time_session(session, side)))
    return columns


def _time_lean(client: Client, calls: Calls) -> list[float]:
    numbers = iter(range(CALLS))
    return [
        seconds * 1000
        for seconds in time_each(lambda: client.call(calls.tool, calls.arguments(next(numbers))), CALLS)
    ]


@asynccontextmanager
async def _open_session(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path
) -> AsyncGenerator[ClientSession]:
    server = StdioServerParameters(command=argv[0], args=list(argv[1:]), env=dict(env), cwd=cwd)
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        await session.list_tools()  # the session then knows the schemas that it checks results against
        yield session


async def _time_session(session: ClientSession, calls: Calls) -> list[float]:
    samples: list[float] = []
    for number in range(CALLS):
        arguments: dict[str, Any] = calls.arguments(number)
        began = time.perf_counter()
        result = await session.call_tool(calls.tool, arguments)
        samples.append((time.perf_counter() - began) * 1000)
        assert not result.is_error, result
    return samples


MEASUREMENTS = (
    Measurement(
        (
            Line("read_file p50", "ms", Target("times at most", 1.0)),
            Line("… with the SDK's client", "ms", Target("times at most", 1.0)),
        ),
        with_daemon(measure_read),
    ),
    Measurement(
        (
            Line("write_file p50", "ms", Target("times at most", 1.3)),
            Line("write_file p99", "ms", Target("times at most", 1.3)),
            Line("… p50 with the SDK's client", "ms", Target("times at most", 1.3)),
        ),
        with_daemon(measure_write),
    ),
)
