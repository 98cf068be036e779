"""Our own agent: how soon it is there, what its loop costs, and how soon it is idle once it was cancelled."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.cancelling import Cancelling, model_process
from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.stage import Stage
from bench.thinking import STEPS, own_seconds

CANCELS = 200
SEED = 5
STARTS = 5
"""In one round."""
INITIALIZE: dict[str, object] = {"protocolVersion": 1, "clientCapabilities": {}}


def run(stage: Stage) -> list[Line]:
    started = [_start() for _ in range(ROUNDS * STARTS)]
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        thinking = own_seconds(Path(folder))
    with model_process() as url:
        cancelling = Cancelling(stage, url, SEED)
        cancels = [cancelling.once(number) for number in range(CANCELS)]
    return [
        Line(
            what="`handrail agent`, from its start to `initialize` answered",
            ours=median(started) * 1000,
            peer=None,
            unit="ms",
            target=Target("at most", 1000),
        ),
        Line(
            what="the agent's loop, for one step, without model and tools, p50",
            ours=percentile(thinking, 0.5) * 1000,
            peer=None,
            unit="ms",
            target=Target("at most", 5),
            note=f"p99 {percentile(thinking, 0.99) * 1000:.1f} ms, in a conversation of {STEPS} steps",
        ),
        Line(
            what=f"Cancel of the agent to idle, at {CANCELS} random moments, p99",
            ours=percentile(cancels, 0.99) * 1000,
            peer=None,
            unit="ms",
            target=Target("at most", 500),
            note=f"p50 {percentile(cancels, 0.5) * 1000:.0f} ms, seed {SEED}",
        ),
    ]


def _start() -> float:
    """Seconds from launching the program to its first answer."""
    asked: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    argv = [sys.executable, "-m", "handrail", "agent"]
    began = time.perf_counter()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps(asked).encode() + b"\n")
        agent.stdin.flush()
        answer = json.loads(agent.stdout.readline())
        took = time.perf_counter() - began
        assert answer["result"]["protocolVersion"] == 1, answer
        agent.stdin.close()
        agent.wait(30)
    return took
