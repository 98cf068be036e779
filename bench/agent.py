"""Our own agent: its start, the cost of its loop, and the time from a cancel until its thread is idle.

The cancels come at random moments in each of four parts of an operation, with a scripted model behind the agent. A moment is
relative to an activity that is known to run.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from random import Random
from typing import Any

from bench.daemon import Daemon, build_env, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.own_agent import serve_model
from bench.samples import median, percentile

STARTS = 25
END_SECONDS = 30.0
CANCELS = 200
SEED = 5
SPREAD_SECONDS = 0.05
"""After the beginning of a part; the cancel comes within it."""
WAIT_SECONDS = 60.0
INITIALIZE: dict[str, object] = {"protocolVersion": 1, "clientCapabilities": {}}
AGENT = "handrail"
"""The name under which the daemon hosts our own agent."""
PARTS = ("model", "tool", "join", "approval")
LONG_COMMAND = "sleep 1000"
ASKING_COMMAND = "sleep 1000 & sleep 1001; wait"
"""Not plain, and so it asks, whatever the policy."""
Activities = list[dict[str, Any]]


def measure_start() -> Generator[Figure]:
    with tempfile.TemporaryDirectory(prefix="hb") as home:
        yield Figure(time_starts(sys.executable, build_env(Path(home)), STARTS))


def time_starts(python: str, env: dict[str, str], times: int) -> float:
    """The median, in milliseconds, from the launch of the agent until it has answered `initialize`."""
    return median([_time_start(python, env) for _ in range(times)]) * 1000


def _time_start(python: str, env: dict[str, str]) -> float:
    request: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    argv = [python, "-m", "handrail", "agent"]
    began = time.perf_counter()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        agent.stdin.flush()
        answer = json.loads(agent.stdout.readline())
        took = time.perf_counter() - began
        assert answer["result"]["protocolVersion"] == 1, answer
        agent.stdin.close()
        agent.wait(END_SECONDS)
    return took


def measure_loop() -> Generator[Figure]:
    from bench.agent_loop import STEPS, time_steps  # noqa: PLC0415 - a moved module must cost only this line

    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        steps = time_steps(Path(folder))
    note = f"p99 {percentile(steps, 0.99) * 1000:.1f} ms, in a conversation of {STEPS} steps"
    yield Figure(percentile(steps, 0.5) * 1000, note=note)


def measure_cancel(daemon: Daemon) -> Generator[Figure]:
    with serve_model() as url:
        thread = CancelledThread(daemon, url, Random(SEED))
        samples = [thread.time_cancel(PARTS[number % len(PARTS)]) for number in range(CANCELS)]
    note = f"p50 {percentile(samples, 0.5) * 1000:.0f} ms, seed {SEED}"
    yield Figure(percentile(samples, 0.99) * 1000, note=note)


class CancelledThread:
    """A thread with our agent whose operations are cancelled."""

    def __init__(self, daemon: Daemon, model_url: str, random: Random) -> None:
        self._daemon, self._random = daemon, random
        self._env = {"OPENAI_BASE_URL": f"{model_url}/v1", "HANDRAIL_MODEL": "openai:scripted"}
        body = {"workspace": str(daemon.workspace), "agent": AGENT, "title": "Cancelled"}
        self._path = f"/api/threads/{daemon.post('/api/threads', body)['id']}"
        self._wait_for_end(
            self._prompt(_write_prompt("hello"))
        )  # the agent starts, and connects to its tools

    def time_cancel(self, part: str) -> float:
        """Seconds from the cancel until the thread is idle."""
        operation = self._prompt(_write_prompt(part))
        _wait_until(lambda: _is_under_way(part, self._get(operation)["activities"]))
        if part == "approval":
            self._daemon.wait_for_approval()
        time.sleep(self._random.uniform(0.0, SPREAD_SECONDS))
        began = time.perf_counter()
        self._daemon.post(f"/api/operations/{operation}/cancel", {})
        self._wait_for_end(operation)
        took = time.perf_counter() - began
        assert self._get(operation)["stop"] == "cancelled"
        return took

    def _prompt(self, text: str) -> str:
        return self._daemon.post(f"{self._path}/prompt", {"text": text, "env": self._env})["operation"]

    def _wait_for_end(self, operation: str) -> None:
        _wait_until(lambda: self._get(operation)["ended_at"] is not None)

    def _get(self, operation: str) -> dict[str, Any]:
        return self._daemon.get(f"/api/operations/{operation}")


def _write_prompt(part: str) -> str:
    """A prompt that makes the scripted model play this part of an operation."""
    from tests.support.model_server.script import Call, Turn, script  # noqa: PLC0415 - as above

    def run(*commands: str) -> Turn:
        calls = tuple(Call("execute_command", {"command": command}) for command in commands)
        return Turn("I run it.", calls=calls)

    turns = {
        "hello": Turn("Hello."),
        "model": Turn("I am about to say something long, and", hang=True),
        "tool": run(LONG_COMMAND, LONG_COMMAND),
        "join": run("echo one", LONG_COMMAND),
        "approval": run(ASKING_COMMAND),
    }
    return script(turns[part])


def _is_under_way(part: str, activities: Activities) -> bool:
    sort, how = {"model": ("model", None), "join": ("call", "done")}.get(part, ("call", None))
    return any(activity["sort"] == sort and activity["how"] == how for activity in activities)


def _wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError("The operation did not get to the expected state.")
        time.sleep(0.002)


MEASUREMENTS = (
    Measurement(
        (Line("`handrail agent`, from its start to `initialize` answered", "ms", Target("at most", 1000)),),
        measure_start,
    ),
    Measurement(
        (Line("the agent's loop, for one step, without model and tools, p50", "ms", Target("at most", 5)),),
        measure_loop,
    ),
    Measurement(
        (
            Line(
                f"Cancel of the agent to idle, at {CANCELS} random moments, p99", "ms", Target("at most", 500)
            ),
        ),
        with_daemon(measure_cancel),
    ),
)
