"""get_terminal_buffer by cursor, all over a terminal that holds 64 MB."""

import random
import time

from bench.client import Client
from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.kept import kept
from bench.stage import Stage

READS = 200
"""In one round."""


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        found = kept(client)
        end = int(found["output_bytes"])
        p50 = {
            mode: median([_reads(client, found["terminal_id"], end, mode) for _ in range(ROUNDS)])
            for mode in ("raw", "text")
        }
    return [
        Line(
            what=f"read by cursor p50, 64 MB kept, {mode}",
            ours=took,
            peer=None,
            unit="ms",
            target=Target("at most", 2.0),
        )
        for mode, took in p50.items()
    ]


def _reads(client: Client, terminal: str, end: int, mode: str) -> float:
    """Near the end, where an agent reads on, and anywhere else."""
    samples: list[float] = []
    for turn in range(READS):
        after = end - 4096 if turn % 2 else random.randrange(end)
        began = time.perf_counter()
        result = client.call("get_terminal_buffer", {"terminalId": terminal, "after": after, "mode": mode})
        samples.append(time.perf_counter() - began)
        assert result["structuredContent"]["output"], result
    return percentile(samples, 0.5) * 1000
