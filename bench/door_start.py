"""From launching the door to having its list of tools, beside a bare SDK server's."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.client import Client
from bench.figures import Line, Target, alternate, median
from bench.stage import Stage

STARTS = 5
"""In one round."""
_BARE = str(Path(__file__).parent / "peers" / "bare.py")


def run(stage: Stage) -> list[Line]:
    def bare() -> Client:
        return Client([sys.executable, _BARE], os.environ, stage.workspace)

    ours, peer = alternate(lambda: _start(stage.door), lambda: _start(bare))
    return [
        Line(
            what="door start to tool list",
            ours=ours,
            peer=peer,
            unit="ms",
            target=Target("times at most", 0.15),
        )
    ]


def _start(launch: Callable[[], Client]) -> float:
    return median([_once(launch) for _ in range(STARTS)])


def _once(launch: Callable[[], Client]) -> float:
    began = time.perf_counter()
    with launch() as client:
        client.initialize()
        tools = client.ask("tools/list", {})["tools"]
        took = time.perf_counter() - began
    assert tools
    return took * 1000
