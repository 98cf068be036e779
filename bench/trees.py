"""Process trees that will not end by themselves, stopped; beside a kill of their process group.

Every tree ignores HUP and TERM, so that nothing but KILL ends it, and tries to be lost in its own way.
"""

import os
import shlex
import signal
import subprocess
import sys
import time

from bench.client import Client
from bench.figures import ROUNDS, Line, Target, percentile
from bench.marks import Mark
from bench.running import begin
from bench.stage import STOP_GRACE, Stage

TREES = 40
"""In one round; over all rounds two hundred, of which the percentile is taken."""
GONE_SECONDS = 5.0
"""After which what is still alive is called a survivor."""
PEER_GONE_SECONDS = 0.3
_REFORKING = "import os,time\nwhile True:\n os.fork() and os._exit(0)\n time.sleep(0.003)"
_ESCAPES = (
    "sleep {mark} &",
    "setsid sleep {mark} &",
    "nohup sleep {mark} >/dev/null 2>&1 &",
    "( ( setsid sleep {mark} & ) & )",
    "env -i setsid sleep {mark} &",
    f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(_REFORKING)} {{mark}} &",
)
_MANY = 5
"""Processes a re-forking tree must have been seen to make before it is stopped."""


def run(stage: Stage) -> list[Line]:
    ours: list[float | None] = []
    peers: list[float | None] = []
    with stage.client() as client:
        for _ in range(ROUNDS):
            ours += [_stop(stage, client, number) for number in range(TREES)]
            peers += [_kill_group(number) for number in range(TREES)]
    survivors = Line(
        what=f"… survivors of {len(ours)} trees",
        ours=ours.count(None),
        peer=peers.count(None),
        unit="",
        target=Target("at most", 0),
        note="the peer kills the process group of its tree",
    )
    return [
        Line(
            what="tree gone after KILL is due, p99",
            ours=_p99(ours, GONE_SECONDS),
            peer=_p99(peers, PEER_GONE_SECONDS),
            unit="ms",
            target=Target("at most", 250.0),
        ),
        survivors,
    ]


def _p99(gone: list[float | None], otherwise: float) -> float:
    return percentile([otherwise if each is None else each for each in gone], 0.99) * 1000


def _stop(stage: Stage, client: Client, number: int) -> float | None:
    """Seconds from the moment KILL was due until nothing was left; None when something was."""
    mark = Mark.new()
    running = begin(stage, client, _command(number, mark), mark.env)
    mark.wait_until_up(2, _MANY if _reforks(number) else 2)
    began = time.perf_counter()
    sent = running.cancel()
    gone = mark.wait_until_gone(GONE_SECONDS)
    running.result()
    stage.finish(sent)
    if gone is None:
        mark.kill()
    return None if gone is None else max(0.0, gone - began - STOP_GRACE)


def _kill_group(number: int) -> float | None:
    """The same tree, not ours to keep: its process group killed at once."""
    mark = Mark.new()
    argv = ["bash", "-c", _command(number, mark)]
    process = subprocess.Popen(
        argv,
        env={**os.environ, **mark.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    mark.wait_until_up(2, _MANY if _reforks(number) else 2)
    began = time.perf_counter()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    gone = mark.wait_until_gone(PEER_GONE_SECONDS)
    mark.kill()
    return None if gone is None else gone - began


def _command(number: int, mark: Mark) -> str:
    escape = _ESCAPES[number % len(_ESCAPES)].format(mark=mark.text)
    return f"trap '' HUP TERM\n{escape}\nsleep {mark.text}\n:"


def _reforks(number: int) -> bool:
    return number % len(_ESCAPES) == len(_ESCAPES) - 1
