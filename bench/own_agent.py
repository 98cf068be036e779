"""Our own agent as a host sees it: ACP over stdio, with a scripted model and Handrail's own tools behind it.

Measures what the first prompt costs more than the second: of an agent that was just started, and in a new thread of
the daemon; and what the agent's process uses while it is idle.
"""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.daemon import Daemon, with_daemon
from bench.idle import MB, read_rss, read_usage
from bench.line import Figure, Line, Measurement, Target
from bench.samples import ROUNDS, median

END_SECONDS = 30.0
QUIET_SECONDS = 5.0
"""Before the measurement of the idle process: the last updates and timers of a prompt are over by then."""
WINDOW_SECONDS = 60.0
SPARE_SECONDS = 15.0
"""Between two new threads: by then the daemon has started a spare agent, which has loaded its libraries."""
_ROOT = Path(__file__).parents[1]


class AgentProcess:
    """The agent, launched as a host does. Leaving the context ends it."""

    def __init__(self, daemon: Daemon, model_url: str) -> None:
        more = {"OPENAI_BASE_URL": f"{model_url}/v1", "HANDRAIL_MODEL": "openai:scripted"}
        argv = [daemon.python, "-m", "handrail", "agent"]
        self._process = subprocess.Popen(
            argv,
            env={**daemon.env, **more},
            cwd=daemon.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last = 0
        self.pid = self._process.pid
        self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        door = {"name": "handrail", "command": daemon.door_argv[0], "args": daemon.door_argv[1:]}
        env = [{"name": "HANDRAIL_HOME", "value": str(daemon.home)}]
        params = {"cwd": str(daemon.workspace), "mcpServers": [{**door, "env": env}]}
        self._session = self.ask("session/new", params)["sessionId"]

    def time_prompt(self, text: str) -> float:
        """Seconds until the prompt is answered."""
        began = time.perf_counter()
        prompt = [{"type": "text", "text": text}]
        answer = self.ask("session/prompt", {"sessionId": self._session, "prompt": prompt})
        assert answer["stopReason"] == "end_turn", answer
        return time.perf_counter() - began

    def ask(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """The result of a request. Drops the notifications that come before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._last and "method" not in message:
                return message["result"]
        raise EOFError("The agent ended.")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(END_SECONDS)
        self._process.stdout.close()


@contextmanager
def start_agent(daemon: Daemon, model_url: str) -> Generator[AgentProcess]:
    """An agent with an open session."""
    agent = AgentProcess(daemon, model_url)
    try:
        yield agent
    finally:
        agent.close()


@contextmanager
def serve_model() -> Generator[str]:
    """The scripted model of the tests as a process; its address."""
    argv = [sys.executable, "-m", "tests.support.model_server"]
    server = subprocess.Popen(argv, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        with server.stdin, server.stdout:  # it serves until its input ends
            yield server.stdout.readline().strip()
    finally:
        server.wait(END_SECONDS)


def measure_first_prompt(daemon: Daemon) -> Generator[Figure]:
    """The first prompt follows the session's opening without a pause, as when a host starts the agent for a prompt."""
    text = _write_greeting()
    with serve_model() as url:
        samples = [_time_prompts(daemon, url, text) for _ in range(ROUNDS)]
    first, second = (median(column) * 1000 for column in zip(*samples, strict=True))
    yield Figure(first - second, note=f"first {first:.0f} ms, second {second:.0f} ms")


def _time_prompts(daemon: Daemon, url: str, text: str) -> tuple[float, float]:
    with start_agent(daemon, url) as agent:
        return agent.time_prompt(text), agent.time_prompt(text)


def measure_new_thread(daemon: Daemon) -> Generator[Figure]:
    """Threads after the first, whose agent the daemon starts on demand."""
    text = _write_greeting()
    with serve_model() as url:
        cold = _time_thread(daemon, url, text)[0] * 1000
        samples: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            time.sleep(SPARE_SECONDS)
            samples.append(_time_thread(daemon, url, text))
    first, second = (median(column) * 1000 for column in zip(*samples, strict=True))
    note = f"first {first:.0f} ms, second {second:.0f} ms; of the first thread: {cold:.0f} ms"
    yield Figure(first - second, note=note)


def _time_thread(daemon: Daemon, url: str, text: str) -> tuple[float, float]:
    body = {"workspace": str(daemon.workspace), "agent": "handrail"}
    thread = daemon.post("/api/threads", body)["id"]
    return _time_thread_prompt(daemon, thread, url, text), _time_thread_prompt(daemon, thread, url, text)


def _time_thread_prompt(daemon: Daemon, thread: str, url: str, text: str) -> float:
    """Seconds until the prompt is answered."""
    env = {"OPENAI_BASE_URL": f"{url}/v1", "HANDRAIL_MODEL": "openai:scripted"}
    began = time.perf_counter()
    daemon.post(f"/api/threads/{thread}/prompt", {"text": text, "env": env})
    while (view := daemon.get(f"/api/threads/{thread}?limit=1"))["operation"] is not None:
        time.sleep(0.005)
    took = time.perf_counter() - began
    assert view["said"][-1]["stop"] == "end_turn", view
    return took


def measure_idle_agent(daemon: Daemon) -> Generator[Figure]:
    with serve_model() as url, start_agent(daemon, url) as agent:
        agent.time_prompt(_write_greeting())
        time.sleep(QUIET_SECONDS)
        before = read_usage(agent.pid)
        time.sleep(WINDOW_SECONDS)
        after = read_usage(agent.pid)
        yield Figure((after.wake_ups - before.wake_ups) / WINDOW_SECONDS)
        yield Figure((after.seconds - before.seconds) / WINDOW_SECONDS * 100)
        yield Figure(read_rss(agent.pid) / MB)


def _write_greeting() -> str:
    """A prompt that makes the scripted model greet."""
    from tests.support.model_server.script import Turn, script  # noqa: PLC0415 - a moved module costs only this line

    return script(Turn("Hello."))


MEASUREMENTS = (
    Measurement(
        (Line("the agent's first prompt, more than its second", "ms", Target("at most", 500)),),
        with_daemon(measure_first_prompt),
    ),
    Measurement(
        (Line("… in a new thread of the daemon", "ms", Target("at most", 500)),),
        with_daemon(measure_new_thread),
    ),
    Measurement(
        (
            Line("idle agent, wake-ups", "/s", Target("at most", 5)),
            Line("… processor time", "%", Target("at most", 0.1)),
            Line("… memory (RSS)", "MB", Target("at most", 150)),
        ),
        with_daemon(measure_idle_agent),
    ),
)
