"""A thousand calls that wait for a person, and how long it takes to list what they ask."""

import time

from bench.figures import Line, Target, percentile
from bench.stage import Stage

WAITING = 1000
LOOKS = 60
ASK_SECONDS = 120.0
"""Bounds the wait until all of them are asked about."""


def run(stage: Stage) -> list[Line]:
    outside = stage.workspace.parent / "outside"
    outside.mkdir()
    with stage.client() as client:
        for number in range(WAITING):
            client.begin("write_file", {"path": str(outside / f"{number}.txt"), "content": f"{number}\n"})
        _wait_until_asked(stage)
        samples = [_look(stage) for _ in range(LOOKS)]
    target = Target("at most", 200)
    return [
        Line(
            what=f"the list of {WAITING} open approvals, p95",
            ours=percentile(samples, 0.95),
            peer=None,
            unit="ms",
            target=target,
        )
    ]


def _wait_until_asked(stage: Stage) -> None:
    deadline = time.monotonic() + ASK_SECONDS
    while len(stage.get("/api/approvals?open=true")) < WAITING:
        if time.monotonic() > deadline:
            raise TimeoutError("Not all calls were asked about.")
        time.sleep(0.2)


def _look(stage: Stage) -> float:
    began = time.perf_counter()
    assert len(stage.get("/api/approvals?open=true")) == WAITING
    return (time.perf_counter() - began) * 1000
