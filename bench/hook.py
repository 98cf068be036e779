"""Clients that people run: what `handrail hook` adds to a tool call that the policy allows, beside a hook that is `true`;
and `handrail connect --all` with the clients of `make test-agents-all`."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import alternate, median, percentile, time_each

HOOKS = 20
"""In one round."""
CONNECTS = 5
ROOT = Path(__file__).parents[1]
PROGRAMS = (
    *("clients/node_modules/@anthropic-ai/claude-code-*", "agents/node_modules/opencode-*/bin"),
    *(f"{folder}/node_modules/.bin" for folder in ("agents", "clients", "other-clients")),
)
"""Folders with the clients' programs below build/, without the editors of the tests. The native ones come first: packages are installed without scripts."""
CLIENTS = ("claude", "codex", "gemini", "opencode", "qwen", "copilot", "kimi", "cline")


def measure_hook(daemon: Daemon) -> Generator[Figure]:
    ours, bare = alternate(
        partial(_time_hooks, daemon, [daemon.python, "-m", "handrail", "hook", "claude"]),
        partial(_time_hooks, daemon, ["true"]),
    )
    added = [mine - other for mine, other in zip(ours, bare, strict=True)]
    yield Figure(median(added), note=f"hook {median(ours):.0f} ms, bare {median(bare):.0f} ms")


def _time_hooks(daemon: Daemon, argv: Sequence[str]) -> float:
    """The p95 of one hook, from its launch to its exit, in milliseconds."""
    return percentile(time_each(partial(_run_hook, daemon, argv), HOOKS), 0.95) * 1000


def _run_hook(daemon: Daemon, argv: Sequence[str]) -> None:
    hook = subprocess.run(
        argv, input=_payload(daemon), env=daemon.env, cwd=daemon.workspace, capture_output=True, check=True
    )
    assert argv == ["true"] or b'"allow"' in hook.stdout, hook


def _payload(daemon: Daemon) -> bytes:
    return json.dumps(
        {
            "session_id": "bench",
            "cwd": str(daemon.workspace),
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "true"},
        }
    ).encode()


def measure_connect(daemon: Daemon) -> Generator[Figure]:
    install = [sys.executable, "-m", "tests.real_agents.install", "agents", "clients", "others"]
    subprocess.run(install, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    programs = [folder for pattern in PROGRAMS for folder in (ROOT / "build").glob(pattern)]
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    missing = [client for client in CLIENTS if shutil.which(client, path=path) is None]
    assert not missing, f"not installed: {missing}"
    seconds = median([_time_connect(daemon, path) for _ in range(CONNECTS)])
    yield Figure(seconds, note=f"{len(CLIENTS)} clients")


def _time_connect(daemon: Daemon, path: str) -> float:
    """The seconds to connect all clients, in a new home directory of the user."""
    with tempfile.TemporaryDirectory(prefix="hb") as home:
        argv = [daemon.python, "-m", "handrail", "connect", "--all", "--yes"]
        env = {**daemon.env, "PATH": path, "HOME": home}
        run = partial(
            subprocess.run, argv, env=env, cwd=daemon.workspace, check=True, stdout=subprocess.DEVNULL
        )
        return time_each(run, 1)[0]


MEASUREMENTS = (
    Measurement(
        (Line("`handrail hook`, more than a bare hook, p95", "ms", Target("at most", 60)),),
        with_daemon(measure_hook),
    ),
    Measurement(
        (Line("`handrail connect --all`, p50", "s", Target("at most", 3)),), with_daemon(measure_connect)
    ),
)
