"""Comparison of this checkout with another commit: the same client measures both, in turns.

Imports no module of Handrail: both sides are processes, each with the Python of its environment.
"""

import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench import agent, command, door, file_tools
from bench.base_checkout import prepare_checkout
from bench.client import Client
from bench.daemon import build_env, start_daemon
from bench.groups import select_names
from bench.line import Figure, Line, Measurement, Target
from bench.runner import Group
from bench.samples import alternate, median, percentile

ROUNDS = 15
"""More than beside a peer: here a few percent matter."""
DOOR_STARTS, AGENT_STARTS, READS, COMMANDS = 3, 2, 60, 30
"""Of one side in one round."""
TARGET = Target("times at most", 1.05)
"""Not slower, up to the noise of a quiet machine."""

Pythons = tuple[str, str]
"""The interpreters of the new and of the old environment."""


def build_groups(root: Path, commit: str, names: Sequence[str]) -> list[Group]:
    """Groups with this checkout as `ours` and the other commit as `peer`. Raises UnknownGroup, CheckoutFailed."""
    selected = select_names(names, list(_COMPARED))
    pythons = (sys.executable, prepare_checkout(root, commit))
    return [_build_group(name, pythons) for name in selected]


def _build_group(name: str, pythons: Pythons) -> Group:
    title, compare_sides = _COMPARED[name]
    line = Line(f"{title}, new / old", "ms", TARGET)
    return Group(name, line.title, lambda: [Measurement((line,), partial(compare_sides, pythons))])


def _compare_door(pythons: Pythons) -> Generator[Figure]:
    with ExitStack() as stack:
        daemons = [stack.enter_context(start_daemon(python)) for python in pythons]
        sides = [partial(door.time_starts, daemon.start_door, DOOR_STARTS) for daemon in daemons]
        yield compare(sides)


def _compare_read(pythons: Pythons) -> Generator[Figure]:
    yield from _compare_calls(pythons, lambda client: file_tools.time_reads(client, READS))


def _compare_command(pythons: Pythons) -> Generator[Figure]:
    yield from _compare_calls(pythons, lambda client: command.time_commands(client, COMMANDS))


def _compare_calls(pythons: Pythons, time_calls: Callable[[Client], float]) -> Generator[Figure]:
    with ExitStack() as stack:
        daemons = [stack.enter_context(start_daemon(python)) for python in pythons]
        for daemon in daemons:
            file_tools.write_fox(daemon)
        clients = [stack.enter_context(daemon.connect()) for daemon in daemons]
        yield compare([partial(time_calls, client) for client in clients])


def _compare_agent(pythons: Pythons) -> Generator[Figure]:
    with tempfile.TemporaryDirectory(prefix="hb") as home:
        env = build_env(Path(home))
        yield compare([partial(agent.time_starts, python, env, AGENT_STARTS) for python in pythons])


def compare(sides: Sequence[Callable[[], float]], rounds: int = ROUNDS) -> Figure:
    """Measure the new and the old side in turns, after one run of each to warm up byte code and caches.

    The ratio is the median of the ratios of the rounds: both sides of one round meet the same load of the machine.
    """
    for side in sides:
        side()
    new, old = alternate(*sides, rounds=rounds)
    ratios = [ours / theirs for ours, theirs in zip(new, old, strict=True)]
    note = (
        f"{rounds} rounds in turns; new / old p10 {percentile(ratios, 0.1):.3f}, median {median(ratios):.3f}, "
        f"p90 {percentile(ratios, 0.9):.3f}; of the fastest rounds {min(new) / min(old):.3f}"
    )
    return Figure(median(new), median(old), note, ratio=median(ratios))


_COMPARED: dict[str, tuple[str, Callable[[Pythons], Generator[Figure]]]] = {
    "door": ("door start to tool list", _compare_door),
    "read": ("read_file p50, lean client", _compare_read),
    "command": ("execute_command `true` p50", _compare_command),
    "agent": ("`handrail agent`, start to `initialize`", _compare_agent),
}
