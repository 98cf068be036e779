"""Common terminal recorders: `script` and tmux's `pipe-pane`. Each writes all output to a file."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

MB = 1_000_000
SECONDS = 120.0
"""Bounds a recorder that hangs."""


def script_rate(size: int) -> float:
    """Megabytes per second of `size` bytes through `script`."""
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        record = Path(folder) / "typescript"
        command = ["script", "-q", "-e", "-c", f"exec head -c {size} /dev/zero", str(record)]
        began = time.perf_counter()
        subprocess.run(
            command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=SECONDS
        )
        took = time.perf_counter() - began
        assert record.stat().st_size >= size, record.stat()
    return size / MB / took


def tmux_rate(size: int) -> float:
    """The same through a tmux pane, piped to a file."""
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        record, server = Path(folder) / "piped", _TmuxServer(Path(folder) / "s")
        server("new-session", "-d", "-s", "b", f"read go; exec head -c {size} /dev/zero")
        try:
            server("pipe-pane", "-t", "b", "-O", f"exec cat > {record}")
            began = time.perf_counter()
            server("send-keys", "-t", "b", "Enter")
            while time.perf_counter() - began < SECONDS and server.is_alive():
                time.sleep(0.005)
            took = time.perf_counter() - began
        finally:
            server.end()
    return size / MB / took


class _TmuxServer:
    """A tmux server on a private socket."""

    def __init__(self, socket: Path) -> None:
        self._command = ["tmux", "-S", str(socket), "-f", os.devnull]

    def __call__(self, *words: str) -> None:
        subprocess.run([*self._command, *words], check=True, capture_output=True, timeout=SECONDS)

    def is_alive(self) -> bool:
        found = subprocess.run(
            [*self._command, "has-session", "-t", "b"], check=False, capture_output=True, timeout=SECONDS
        )
        return found.returncode == 0

    def end(self) -> None:
        subprocess.run([*self._command, "kill-server"], check=False, capture_output=True, timeout=SECONDS)
