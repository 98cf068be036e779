"""Our own agent, hosted by the daemon: its work cancelled at random moments, with a scripted model behind it.

Owns the conversation, the moments and the clock. A moment is relative to something that is known to go on just then, in
each of four parts of an operation in turn.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.model.script import Call, Turn, script

from bench.stage import Stage
from handrail.config import OWN_AGENT

ROOT = Path(__file__).parents[1]
BOUND = 60.0
SPREAD = 0.05
"""Seconds after the beginning of a part within which it is cancelled."""
LATE = "sleep 1000"
ASKED = "sleep 1000 & sleep 1001; wait"
"""Not plain, and so asked about, whatever is allowed."""
Activities = list[dict[str, Any]]


def _runs(*lines: str) -> Turn:
    return Turn("I run it.", calls=tuple(Call("execute_command", {"command": line}) for line in lines))


def _is(sort: str, how: str | None) -> Callable[[Activities], bool]:
    return lambda activities: any(each["sort"] == sort and each["how"] == how for each in activities)


PARTS: tuple[tuple[Turn, Callable[[Activities], bool]], ...] = (
    (Turn("I am about to say something long, and", hang=True), _is("model", None)),
    (_runs(LATE, LATE), _is("call", None)),
    (_runs("echo one", LATE), _is("call", "done")),
    (_runs(ASKED), _is("call", None)),
)
"""Model, tool, join and approval: what is played, and how it is known to be under way."""


@contextmanager
def model_process() -> Generator[str]:
    """The scripted model, in a process of its own; its address."""
    argv = [sys.executable, "-m", "tests.model"]
    server = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdin, server.stdout:
        yield server.stdout.readline().strip()
    server.wait(BOUND)


class Cancelling:
    """One conversation with our agent."""

    def __init__(self, stage: Stage, url: str, seed: int) -> None:
        self._stage, self._random = stage, Random(seed)
        self._env = {"OPENAI_BASE_URL": f"{url}/v1", "HANDRAIL_MODEL": "openai:scripted"}
        body = {"workspace": str(stage.workspace), "agent": OWN_AGENT, "title": "Cancelled"}
        self._path = f"/api/threads/{stage.post('/api/threads', body)['id']}"
        self._wait_for_end(self._say(Turn("Hello.")))  # it starts, and connects to its tools

    def once(self, number: int) -> float:
        """Seconds from sending the cancel until the thread is idle."""
        turn, is_under_way = PARTS[number % len(PARTS)]
        operation = self._say(turn)
        _until(lambda: is_under_way(self._detail(operation)["activities"]))
        if number % len(PARTS) == 3:
            self._stage.asked()
        time.sleep(self._random.uniform(0.0, SPREAD))
        began = time.perf_counter()
        self._stage.post(f"/api/operations/{operation}/cancel", {})
        self._wait_for_end(operation)
        took = time.perf_counter() - began
        assert self._detail(operation)["stop"] == "cancelled"
        return took

    def _say(self, turn: Turn) -> str:
        body = {"text": script(turn), "env": self._env}
        return self._stage.post(f"{self._path}/prompt", body)["operation"]

    def _wait_for_end(self, operation: str) -> None:
        _until(lambda: self._detail(operation)["ended_at"] is not None)

    def _detail(self, operation: str) -> dict[str, Any]:
        return self._stage.get(f"/api/operations/{operation}")


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BOUND
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("What was waited for did not come.")
        time.sleep(0.002)
