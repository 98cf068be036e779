"""get_terminal_buffer by cursor, all over a terminal that holds 64 MB."""

import random
import time
from collections.abc import Callable

from bench.client import Client
from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.kept import kept
from bench.stage import Stage

READS = 200
"""In one round."""
NEWS = 4096
"""Bytes that came since the last look: what an agent that follows a build is given."""


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        found = kept(stage, client)
        return [
            _line(client, found["terminal_id"], int(found["output_bytes"]), mode) for mode in ("raw", "text")
        ]


def _line(client: Client, terminal: str, end: int, mode: str) -> Line:
    rounds = [
        (
            _p50(client, terminal, mode, lambda: end - NEWS),
            _p50(client, terminal, mode, lambda: random.randrange(end)),
        )
        for _ in range(ROUNDS)
    ]
    news, anywhere = (median(column) for column in zip(*rounds, strict=True))
    return Line(
        what=f"read by cursor p50, 64 MB kept, {mode}",
        ours=news,
        peer=None,
        unit="ms",
        target=Target("at most", 2.0),
        note=f"for the last {NEWS // 1024} KiB; a whole answer of 32 KiB from anywhere takes {anywhere:.2f} ms",
    )


def _p50(client: Client, terminal: str, mode: str, after: Callable[[], int]) -> float:
    samples: list[float] = []
    for _ in range(READS):
        cursor = {"terminalId": terminal, "after": after(), "mode": mode}
        began = time.perf_counter()
        result = client.call("get_terminal_buffer", cursor)
        samples.append(time.perf_counter() - began)
        assert result["structuredContent"]["output"], result
    return percentile(samples, 0.5) * 1000
