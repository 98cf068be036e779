"""A tracked, gated, journaled read_file, beside a bare SDK server that awaits one FULL commit of the same bytes.

Both are asked by the SDK's own client, as an agent would; and again by our lean one, whose figures say how the servers
compare when the client costs nothing.
"""

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

from bench.client import Client
from bench.commit import Commits
from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.stage import Stage

CALLS = 200
"""In one round."""
TEXT = "The quick brown fox jumps over the lazy dog, again.\n" * 20
"""About a kilobyte: a small source file."""
READ = ("read_file", {"path": "fox.txt"})
ECHO = ("echo", {"text": TEXT})
_ROOT = Path(__file__).parent.parent


def run(stage: Stage) -> list[Line]:
    (stage.workspace / "fox.txt").write_text(TEXT)
    rounds = anyio.run(_rounds, stage)
    ours, theirs, ours_lean, theirs_lean, alone = (median(column) for column in zip(*rounds, strict=True))
    note = (
        f"the FULL commit alone takes {alone:.2f} ms (p50). By a client that costs nothing: "
        f"{ours_lean:.2f} ms, peer {theirs_lean:.2f} ms, {ours_lean / theirs_lean:.2f} x"
    )
    target = Target("times at most", 1.3)
    return [Line(what="read_file p50", ours=ours, peer=theirs, unit="ms", target=target, note=note)]


async def _rounds(stage: Stage) -> list[list[float]]:
    disk = stage.workspace.parent  # the journal's too
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])}
    commits = Commits(str(disk / "alone.db"))
    async with (
        _session(stage.door_argv, stage.env, stage.workspace) as sdk,
        _session(_peer(disk / "sdk.db"), env, stage.workspace) as sdk_peer,
    ):
        with stage.client() as lean, Client(_peer(disk / "lean.db"), env, stage.workspace) as lean_peer:
            lean_peer.initialize()
            return [
                [
                    await _p50_of(sdk, *READ),
                    await _p50_of(sdk_peer, *ECHO),
                    _p50(lambda: lean.call(*READ)),
                    _p50(lambda: lean_peer.call(*ECHO)),
                    _p50(lambda: commits.commit(TEXT)),
                ]
                for _ in range(ROUNDS)
            ]


def _peer(database: Path) -> list[str]:
    return [sys.executable, str(_ROOT / "bench" / "peers" / "committing.py"), str(database)]


@asynccontextmanager
async def _session(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> AsyncGenerator[ClientSession]:
    server = StdioServerParameters(command=argv[0], args=list(argv[1:]), env=dict(env), cwd=cwd)
    async with stdio_client(server) as (heard, said), ClientSession(heard, said) as session:
        await session.initialize()
        await session.list_tools()  # so that it knows the schemas it checks results against
        yield session


async def _p50_of(session: ClientSession, tool: str, arguments: dict[str, str]) -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        result = await session.call_tool(tool, arguments)
        samples.append(time.perf_counter() - began)
        assert not result.is_error, result
    return percentile(samples, 0.5) * 1000


def _p50(work: Callable[[], object]) -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        work()
        samples.append(time.perf_counter() - began)
    return percentile(samples, 0.5) * 1000
