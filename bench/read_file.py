"""read_file through the gate and the journal, beside an SDK server that awaits one durable commit of the same bytes.

Both are asked by the SDK's client, as an agent would, and by a lean client, which shows the servers without the client's cost.
"""

import os
import sys
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.peers.commit import Commits
from bench.samples import ROUNDS, median, percentile, time_p50

CALLS = 200
"""In one round."""
TEXT = "The quick brown fox jumps over the lazy dog, again.\n" * 20
"""About a kilobyte: a small source file."""
READ = ("read_file", {"path": "fox.txt"})
ECHO = ("echo", {"text": TEXT})
_ROOT = Path(__file__).parents[1]


def measure_read(daemon: Daemon) -> Generator[Figure]:
    write_file(daemon)
    rounds = anyio.run(_measure_rounds, daemon)
    ours, peer, ours_lean, peer_lean, commit = (median(column) for column in zip(*rounds, strict=True))
    note = (
        f"the durable commit alone takes {commit:.2f} ms (p50). With the lean client: "
        f"{ours_lean:.2f} ms, peer {peer_lean:.2f} ms, {ours_lean / peer_lean:.2f} x"
    )
    yield Figure(ours, peer, note)


def write_file(daemon: Daemon) -> None:
    (daemon.workspace / "fox.txt").write_text(TEXT)


def time_reads(client: Client, times: int) -> float:
    """The p50 of read_file, in milliseconds, with the lean client."""
    return time_p50(lambda: client.call(*READ), times) * 1000


async def _measure_rounds(daemon: Daemon) -> list[list[float]]:
    disk = daemon.workspace.parent  # the same disk as the journal's
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])}
    commits = Commits(str(disk / "commit.db"))
    async with (
        _open_session(daemon.door_argv, daemon.env, daemon.workspace) as sdk,
        _open_session(_peer_argv(disk / "sdk.db"), env, daemon.workspace) as sdk_peer,
    ):
        with (
            daemon.connect() as lean,
            Client(_peer_argv(disk / "lean.db"), env, daemon.workspace) as lean_peer,
        ):
            lean_peer.initialize()
            return [
                [
                    await _time_session(sdk, *READ),
                    await _time_session(sdk_peer, *ECHO),
                    time_reads(lean, CALLS),
                    time_p50(lambda: lean_peer.call(*ECHO), CALLS) * 1000,
                    time_p50(lambda: commits.commit(TEXT), CALLS) * 1000,
                ]
                for _ in range(ROUNDS)
            ]


def _peer_argv(database: Path) -> list[str]:
    return [sys.executable, str(_ROOT / "bench" / "peers" / "commit_server.py"), str(database)]


@asynccontextmanager
async def _open_session(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path
) -> AsyncGenerator[ClientSession]:
    server = StdioServerParameters(command=argv[0], args=list(argv[1:]), env=dict(env), cwd=cwd)
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        await session.list_tools()  # the session then knows the schemas that it checks results against
        yield session


async def _time_session(session: ClientSession, tool: str, arguments: dict[str, str]) -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        result = await session.call_tool(tool, arguments)
        samples.append(time.perf_counter() - began)
        assert not result.is_error, result
    return percentile(samples, 0.5) * 1000


MEASUREMENTS = (
    Measurement((Line("read_file p50", "ms", Target("times at most", 1.3)),), with_daemon(measure_read)),
)
