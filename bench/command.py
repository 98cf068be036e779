"""execute_command of `true`, allowed by policy, supervised and journaled; beside a bare PTY child."""

from collections.abc import Generator

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.peers.pty_child import PtyChild
from bench.samples import alternate_medians, time_p50

CALLS = 60
"""In one round."""


def measure_command(daemon: Daemon) -> Generator[Figure]:
    with daemon.connect() as client:
        ours, peer = alternate_medians(lambda: time_commands(client, CALLS), _time_children)
    yield Figure(ours, peer)


def time_commands(client: Client, times: int) -> float:
    """The p50 of execute_command `true`, in milliseconds."""

    def run() -> None:
        result = client.call("execute_command", {"command": "true"})
        assert result["structuredContent"]["exit_code"] == 0, result

    return time_p50(run, times) * 1000


def _time_children() -> float:
    return time_p50(lambda: PtyChild("true").drain(), CALLS) * 1000


MEASUREMENTS = (
    Measurement(
        (Line("execute_command `true` p50", "ms", Target("at most", 6.0)),), with_daemon(measure_command)
    ),
)
