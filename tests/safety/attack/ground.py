"""What any process of the same user can see: the home, who runs there, and who stands above whom."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

BOUND = 60.0
"""Seconds for anything an attack waits for."""
HOME = Path(os.environ.get("HANDRAIL_HOME", "/"))


@dataclass
class Got:
    """What came of one try."""

    code: int
    said: str


@dataclass
class Order:
    """What is to be tried, from where, and what is known of the target."""

    posture: str
    tries: list[str]
    ids: dict[str, str]
    out: str


Try = Callable[[Order], Got]


def until(seen: Callable[[], T]) -> T:
    end = time.monotonic() + BOUND
    while not (found := seen()):
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)
    return found


def about() -> dict[str, Any]:
    """daemon.json, or nothing while there is none."""
    try:
        return json.loads((HOME / "daemon.json").read_text())
    except (OSError, ValueError):
        return {}


def where() -> str:
    """The daemon's address: host and port."""
    return str(about()["url"]).removeprefix("http://")


def keeper_pid() -> int:
    return int(until((HOME / "keeper.lock").read_text))


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def above(pid: int) -> Iterator[int]:
    while (pid := parent(pid)) > 0:
        yield pid


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid))
