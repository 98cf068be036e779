"""execute_command of `true`: approved by rule, under a warden, journaled; beside a bare PTY child."""

import time

from bench.client import Client
from bench.figures import Line, Target, alternate, percentile
from bench.peers.pty_child import PtyChild
from bench.stage import Stage

CALLS = 60
"""In one round."""


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        ours, peer = alternate(lambda: _through(client), _bare)
    return [
        Line(
            what="execute_command `true` p50", ours=ours, peer=peer, unit="ms", target=Target("at most", 12.0)
        )
    ]


def _through(client: Client) -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        result = client.call("execute_command", {"command": "true"})
        samples.append(time.perf_counter() - began)
        assert result["structuredContent"]["exit_code"] == 0
    return percentile(samples, 0.5) * 1000


def _bare() -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        PtyChild("true").drain()
        samples.append(time.perf_counter() - began)
    return percentile(samples, 0.5) * 1000
