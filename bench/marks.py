"""A mark that every process of one tree carries, in its arguments or its environment, and the search for it in /proc.

Owns the looking. Does not know who started the processes, nor how they are ended.
"""

import itertools
import os
import signal
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

VARIABLE = "HANDRAIL_BENCH_MARK"
UP_SECONDS = 10.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Mark:
    """A number of seconds that nobody else sleeps for: an argument of `sleep` that is also a name."""

    text: str

    @classmethod
    def new(cls) -> Self:
        return cls(f"86400.{os.getpid():07d}{next(_numbers):05d}")

    @property
    def env(self) -> dict[str, str]:
        return {VARIABLE: self.text}

    def wait_until_up(self, alive: int, seen: int) -> None:
        """Return when so many processes that were given the mark live at once, and so many were ever seen."""
        found: set[int] = set()
        deadline = time.monotonic() + UP_SECONDS
        while time.monotonic() < deadline:
            bearers = [pid for pid in _pids() if _arguments(pid)[-2:-1] == [self.text.encode()]]
            found.update(bearers)
            if len(bearers) >= alive and len(found) >= seen:
                return
            time.sleep(0.001)
        raise TimeoutError("The tree did not grow.")

    def wait_until_gone(self, within: float) -> float | None:
        """The moment by `perf_counter` when no process carried the mark any more; None when some still do."""
        deadline = time.perf_counter() + within
        while time.perf_counter() < deadline:
            if not self.carriers():
                return time.perf_counter()
            time.sleep(0.001)
        return None

    def carriers(self) -> list[int]:
        """Every process that carries the mark; one that is dead and not reaped yet carries nothing."""
        text = self.text.encode()
        return [pid for pid in _pids() if text in _read(pid, "cmdline") or text in _read(pid, "environ")]

    def kill(self) -> None:
        """End what still carries the mark; a tree that forks faster than we look is looked at again."""
        deadline = time.monotonic() + UP_SECONDS
        while (carriers := self.carriers()) and time.monotonic() < deadline:
            for pid in carriers:
                _kill(pid)


def _pids() -> Generator[int]:
    """Newest first: what is looked for was started last."""
    yield from sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)  # noqa: PTH208


def _arguments(pid: int) -> list[bytes]:
    return _read(pid, "cmdline").split(b"\0")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
