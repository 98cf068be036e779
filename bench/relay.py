"""Calls that are forwarded to another MCP server, beside the direct call and two other relays; 5 servers at the door; 200 processes.

All call the same echo server of the SDK. Ours decides by rules, journals each call and waits for the commit before it forwards:
a forwarded call may have an effect. The other relays do none of that.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from bench.client import Client
from bench.daemon import Daemon, make_home, run_daemon
from bench.door import STARTS, time_starts
from bench.line import Figure, Line, Measurement, Target
from bench.process_memory import read_rss
from bench.samples import alternate_medians, median, time_p50

CALLS = 100
"""Of one side in one round."""
TEXT = "The quick brown fox jumps over the lazy dog, again.\n" * 20
START_SECONDS = 120.0
DOOR_SERVERS = 5
SERVERS, CLIENTS = 20, 10
CANCELS = 15
MB = 1_000_000
_ROOT = Path(__file__).parents[1]
_PEERS = _ROOT / "bench" / "peers"
_ECHO = [sys.executable, str(_PEERS / "echo_server.py")]
_TINY = [sys.executable, "-I", "-S", str(_PEERS / "tiny_server.py")]
_FASTMCP = _ROOT / "build" / "relays" / "fastmcp" / "bin" / "python"
_MODULES = _ROOT / "build" / "relays" / "node" / "node_modules"


@contextmanager
def daemon_with(servers: Mapping[str, Sequence[str]]) -> Generator[Daemon]:
    """A daemon with these servers, whose calls a rule allows."""
    entries = [
        f'[[servers]]\nname = "{name}"\ncommand = {json.dumps(list(command))}\n'
        f'[[rules]]\neffect = "allow"\nserver = "{name}"\n'
        for name, command in servers.items()
    ]
    with make_home() as home:
        with (home / "config.toml").open("a") as config:
            config.write("".join(entries))
        with run_daemon(home) as daemon:
            yield daemon


def measure_calls() -> Generator[Figure]:
    install_relays()
    with ExitStack() as stack:
        daemon = stack.enter_context(daemon_with({"echo": _ECHO}))
        ours = stack.enter_context(daemon.connect())
        here = Path.cwd()
        direct = stack.enter_context(Client(_ECHO, os.environ, here))
        proxy = stack.enter_context(
            Client([str(_FASTMCP), str(_PEERS / "fastmcp_proxy.py"), *_ECHO], os.environ, here)
        )
        raw = stack.enter_context(Client(stack.enter_context(raw_relay()), os.environ, here))
        clients = {ours: "echo__echo", direct: "echo", proxy: "echo", raw: "echo"}
        for client in (direct, proxy, raw):
            client.initialize()
        for client in clients:
            client.ask("tools/list", {})
        ours_ms, *others = alternate_medians(
            *(partial(_time_calls, client, tool) for client, tool in clients.items())
        )
    for peer in others:
        yield Figure(ours_ms, peer)


def _time_calls(client: Client, tool: str) -> float:
    return time_p50(lambda: client.call(tool, {"text": TEXT}), CALLS) * 1000


def measure_start() -> Generator[Figure]:
    names = [f"s{number}" for number in range(DOOR_SERVERS)]
    with daemon_with(dict.fromkeys(names, _TINY)) as daemon:
        with daemon.connect() as client:
            listed = {tool["name"] for tool in client.ask("tools/list", {})["tools"]}
        assert listed >= {f"{name}__echo" for name in names}, listed
        ours, peer = alternate_medians(
            lambda: time_starts(daemon.start_door, STARTS),
            lambda: time_starts(lambda: Client(_ECHO, os.environ, daemon.workspace), STARTS),
        )
        yield Figure(ours, peer)


def measure_memory() -> Generator[Figure]:
    names = [f"s{number}" for number in range(SERVERS)]
    with daemon_with(dict.fromkeys(names, _TINY)) as daemon, ExitStack() as stack:
        pid = daemon.get("/api/health")["daemon"]["pid"]
        before = read_rss(pid)
        clients = [stack.enter_context(daemon.connect()) for _ in range(CLIENTS)]
        connected = read_rss(pid)
        for client in clients:
            for name in names:
                client.call(f"{name}__echo", {"text": TEXT})
        without = f"{(connected - before) / MB:.0f} MB of it for the clients, without a server"
        yield Figure((read_rss(pid) - before) / MB, note=f"{before / MB:.0f} MB before; {without}")


def measure_cancel() -> Generator[Figure]:
    with make_log() as log, daemon_with({"s": [*_TINY, str(log)]}) as daemon, daemon.connect() as client:
        client.call("s__echo", {"text": TEXT})
        yield Figure(median([_time_cancel(daemon, client, log, number) for number in range(CANCELS)]) * 1000)


@contextmanager
def make_log() -> Generator[Path]:
    """A file for the server's notes."""
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        log = Path(folder) / "log"
        log.touch()
        yield log


def _time_cancel(daemon: Daemon, client: Client, log: Path, number: int) -> float:
    """From a person's Cancel until the server has read it. Both read the same clock."""
    request = client.begin("s__wait", {"text": str(number)})
    _wait_for(lambda: f"began {number}" in log.read_text(), "The call did not reach the server.")
    (call,) = [each for each in daemon.get("/api/calls?status=running") if each["tool"] == "s__wait"]
    began = time.monotonic()
    daemon.post(f"/api/calls/{call['id']}/cancel", {})
    client.answer(request)
    _wait_for(lambda: log.read_text().count("cancelled ") > number, "The server was not told.")
    return float(log.read_text().split()[-1]) - began


def install_relays() -> None:
    """Install the other relays below build/, if they are not there."""
    subprocess.run(
        [sys.executable, "-m", "tests.real_agents.install", "relays"],
        cwd=_ROOT,
        check=True,
        stdout=sys.stderr,
    )


@contextmanager
def raw_relay() -> Generator[list[str]]:
    """supergateway, which serves the echo server over HTTP; yields the command of mcp-remote, which makes that stdio again."""
    with closing(socket.socket()) as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
    node = subprocess.run(
        [sys.executable, "-c", "from tests.real_agents.install import node; print(node())"],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    gateway = [
        *(node, str(_MODULES / "supergateway" / "dist" / "index.js"), "--stdio", " ".join(_ECHO)),
        *("--outputTransport", "streamableHttp", "--stateful", "--port", str(port), "--logLevel", "none"),
    ]
    process = subprocess.Popen(
        gateway, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(partial(_is_listening, port), "The relay did not start.")
        remote = str(_MODULES / "mcp-remote" / "dist" / "proxy.js")
        yield [node, remote, f"http://127.0.0.1:{port}/mcp", "--silent"]
    finally:
        process.terminate()
        process.wait()


def _is_listening(port: int) -> bool:
    with closing(socket.socket()) as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(condition: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(problem)
        time.sleep(0.005)


MEASUREMENTS = (
    Measurement(
        (
            Line("forwarded call p50, beside the direct call", "ms", Target("times at most", 1.3)),
            Line("… beside FastMCP's proxy", "ms", Target("times at most", 1.0)),
            Line("… beside supergateway and mcp-remote", "ms", Target("times at most", 1.0)),
        ),
        measure_calls,
    ),
    Measurement(
        (Line("door start to tool list, 5 servers", "ms", Target("times at most", 0.15)),), measure_start
    ),
    Measurement(
        (Line("a person's cancel until the server has it", "ms", Target("at most", 100)),), measure_cancel
    ),
    Measurement((Line("memory for 20 servers and 10 clients", "MB", Target("at most", 40)),), measure_memory),
)
