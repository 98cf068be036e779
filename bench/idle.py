"""What an idle terminal costs: the memory of all our processes, each page counted by its share."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.figures import Line, Target, median
from bench.stage import Stage

TERMINALS = 20
ROUNDS = 3
SETTLE_SECONDS = 2.0
"""For shells to read their start-up files."""
MB = 1_000_000


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        each: list[float] = []
        for _ in range(ROUNDS):
            before = _proportional(stage)
            opened = [
                client.call("create_tracked_terminal", {"shellPath": "/bin/bash"})["structuredContent"]
                for _ in range(TERMINALS)
            ]
            time.sleep(SETTLE_SECONDS)
            each.append((_proportional(stage) - before) / TERMINALS / MB)
            for terminal in opened:
                client.call("close_terminal", {"terminalId": terminal["terminal_id"]})
    return [
        Line(
            what="memory (PSS) of an idle terminal",
            ours=median(each),
            peer=None,
            unit="MB",
            target=Target("at most", 6.0),
        )
    ]


def _proportional(stage: Stage) -> int:
    health = stage.get("/api/health")
    roots = [health["daemon"]["pid"], health["keeper"]["pid"]]
    return sum(map(_pss, dict.fromkeys(pid for root in roots for pid in _tree(root))))


def _tree(root: int) -> Iterator[int]:
    yield root
    with suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _pss(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
