"""A hundred terminals that print at once, and how late the daemon's loop is meanwhile."""

import time

from bench.client import Client
from bench.figures import Line, Target
from bench.stage import Stage

TERMINALS = 100
SECONDS = 66
"""How long they print: longer than the minute of which the daemon tells its lag."""
COMMAND = "until [ -e go ]; do sleep 0.2; done; exec timeout {seconds} yes {number}"
"""They begin together, and each differs: the same asked again while it runs would not be a second terminal."""


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        lag = _storm(stage, client)
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
    for number in range(TERMINALS):
        command = COMMAND.format(seconds=SECONDS, number=number)
        request = client.begin("execute_command", {"command": command, "background": True})
        stage.allow(stage.asked())
        client.answer(request)
    assert len(stage.get("/api/terminals?running=true")) == TERMINALS
    (stage.workspace / "go").touch()
    time.sleep(SECONDS - 4)
    lag = float(stage.get("/api/health")["daemon"]["loop_lag_ms"])
    _wait_until_over(stage)
    return lag


def _wait_until_over(stage: Stage) -> None:
    deadline = time.monotonic() + 3 * SECONDS
    while stage.get("/api/terminals?running=true"):
        if time.monotonic() > deadline:
            raise TimeoutError("The terminals did not end.")
        time.sleep(0.1)
