"""A hundred terminals that print at once, and how late the daemon's loop is meanwhile."""

import time

from bench.client import Client
from bench.figures import Line, Target, median
from bench.stage import Stage

TERMINALS = 100
SECONDS = 20
"""How long they print: far longer than it takes to start them."""
ROUNDS = 3


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        lag = median([_storm(stage, client) for _ in range(ROUNDS)])
    return [
        Line(
            what=f"{TERMINALS} terminals at once, loop lag p99",
            ours=lag,
            peer=None,
            unit="ms",
            target=Target("at most", 100),
        )
    ]


def _storm(stage: Stage, client: Client) -> float:
    command = {"command": f"exec timeout {SECONDS} yes crowd", "background": True}
    for request in [client.begin("execute_command", command) for _ in range(TERMINALS)]:
        client.answer(request)
    assert len(stage.get("/api/terminals?running=true")) == TERMINALS
    time.sleep(SECONDS / 2)
    lag = float(stage.get("/api/health")["daemon"]["loop_lag_ms"])
    _wait_until_over(stage)
    return lag


def _wait_until_over(stage: Stage) -> None:
    deadline = time.monotonic() + 3 * SECONDS
    while stage.get("/api/terminals?running=true"):
        if time.monotonic() > deadline:
            raise TimeoutError("The terminals did not end.")
        time.sleep(0.1)
