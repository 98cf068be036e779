"""A tracked, gated, journaled read_file, beside a bare SDK server that awaits one FULL commit of the same bytes."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.client import Client
from bench.commit import Commits
from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.stage import Stage

CALLS = 200
"""In one round."""
TEXT = "The quick brown fox jumps over the lazy dog, again.\n" * 20
"""About a kilobyte: a small source file."""
_COMMITTING = str(Path(__file__).parent / "peers" / "committing.py")
_ROOT = str(Path(__file__).parent.parent)


def run(stage: Stage) -> list[Line]:
    (stage.workspace / "fox.txt").write_text(TEXT)
    databases = stage.workspace.parent  # the same disk as the journal's
    argv = [sys.executable, _COMMITTING, str(databases / "peer.db")]
    commits = Commits(str(databases / "alone.db"))
    with stage.client() as ours, Client(argv, {**os.environ, "PYTHONPATH": _path()}, stage.workspace) as peer:
        peer.initialize()
        rounds = [
            (
                _p50(lambda: ours.call("read_file", {"path": "fox.txt"})),
                _p50(lambda: peer.call("echo", {"text": TEXT})),
                _p50(lambda: commits.commit(TEXT)),
            )
            for _ in range(ROUNDS)
        ]
    commits.close()
    mine, theirs, alone = (median([each[column] for each in rounds]) for column in range(3))
    note = f"the FULL commit alone takes {alone:.2f} ms (p50)"
    target = Target("times at most", 1.3)
    return [Line(what="read_file p50", ours=mine, peer=theirs, unit="ms", target=target, note=note)]


def _path() -> str:
    return os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))


def _p50(work: Callable[[], object]) -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        work()
        samples.append(time.perf_counter() - began)
    return percentile(samples, 0.5) * 1000
