"""From a person's Cancel to the client's result, beside a bare SDK server that is told to answer."""

import os
import sys
import time
from pathlib import Path

from bench.client import Client
from bench.figures import Line, Target, alternate, percentile
from bench.running import begin
from bench.stage import Stage

CANCELS = 100
"""In one round."""
_WAITING = str(Path(__file__).parent / "peers" / "waiting.py")


def run(stage: Stage) -> list[Line]:
    with stage.client() as client, Client([sys.executable, _WAITING], os.environ, stage.workspace) as peer:
        peer.initialize()
        ours, theirs = alternate(lambda: _cancels(stage, client), lambda: _releases(peer))
    return [
        Line(what="Cancel to result p99", ours=ours, peer=theirs, unit="ms", target=Target("at most", 50.0))
    ]


def _cancels(stage: Stage, client: Client) -> float:
    return percentile([_cancel(stage, client) for _ in range(CANCELS)], 0.99) * 1000


def _cancel(stage: Stage, client: Client) -> float:
    running = begin(stage, client, "echo begun; sleep 1000; echo never")
    began = time.perf_counter()
    sent = running.cancel()
    result = running.result()
    took = time.perf_counter() - began
    stage.finish(sent)
    assert result["structuredContent"]["status"] == "cancelled", result
    return took


def _releases(peer: Client) -> float:
    return percentile([_release(peer) for _ in range(CANCELS)], 0.99) * 1000


def _release(peer: Client) -> float:
    waiting = peer.begin("wait", {})
    peer.call("echo", {"text": "so that it waits by now"})
    began = time.perf_counter()
    peer.begin("release", {})
    peer.answer(waiting)
    return time.perf_counter() - began
