"""Run ripgrep, for every search of files and of terminal output.

Finds the program, adds the common arguments and ends its processes. `Search` blocks; `run_search` runs it in a
thread. Does not parse the output.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import anyio

from handrail.terminal.safe_regex import BadPattern, bad_pattern
from handrail.terminal.thread_pool import ThreadPool

T = TypeVar("T")

PATTERN_MAX = 10_000
"""Upper bound for a pattern: the kernel accepts no argument longer than 128 KiB."""
ALWAYS = ("--no-config", "--color=never", "--crlf", "--engine=default")
"""The user's configuration is ignored, so that results do not vary. The default engine has no look-around."""
_CHUNK = 1 << 16
_COMPLAINT_MAX = 1 << 16


class NoRipgrep(Exception):
    """The program rg was not found."""


@dataclass(slots=True)
class SearchEnd:
    """How a search ended."""

    complaint: str = ""
    code: int = 0
    out_of_time: bool = False
    stopped: bool = False
    """`take` returned False."""
    too_long: int = 0
    """Number of records dropped because they were too long."""


@cache
def ripgrep() -> str:
    """The path of the system's ripgrep, else of the one installed with Handrail. Raises NoRipgrep."""
    bundled = Path(sysconfig.get_path("scripts"), "rg")
    path = shutil.which("rg") or (str(bundled) if os.access(bundled, os.X_OK) else None)
    if path is None:
        raise NoRipgrep(
            "The program rg (ripgrep) was not found, so nothing can be searched or listed. "
            "Install ripgrep, and check with `handrail doctor`."
        )
    return path


class Search:
    """The processes of one search. `stop` may be called from another thread."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(
        self,
        arguments: Sequence[str],
        take: Callable[[bytes], bool],
        *,
        seconds: float,
        cwd: str = "/",
        stdin: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> SearchEnd:
        """Run ripgrep; `take` gets its output in chunks and returns False to stop it. Raises NoRipgrep."""
        command, complaints = (ripgrep(), *ALWAYS, *arguments), unnamed_file()
        try:
            process = self.start(command, cwd=cwd, stdin=stdin, stderr=complaints, pass_fds=pass_fds)
            try:
                ended = _read(process, take, time.monotonic() + seconds)
            finally:
                self.end(process)
            complaint = os.pread(complaints, _COMPLAINT_MAX, 0)
        finally:
            os.close(complaints)
        ended.code = process.returncode
        ended.complaint = "" if ended.stopped else complaint.decode(errors="replace").strip()
        return ended

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: str = "/",
        stdin: int | None = None,
        stderr: int = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=pass_fds,
            env={},
            cwd=cwd,
        )
        self._running.add(process)
        if self._stopped:
            process.kill()
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the process if it still runs, and reap it."""
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        process.wait()
        self._running.discard(process)

    def stop(self) -> None:
        """Kill all processes of this search, including any that starts later. Thread-safe."""
        self._stopped = True
        for process in tuple(self._running):
            process.kill()


async def run_search(room: ThreadPool, search: Search, work: Callable[[], T]) -> T:
    """Run `work` in a thread. Cancellation stops the search and waits until it has ended."""
    done: Future[T] = Future()  # carries an exception past the task group, which would wrap it in a group
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_cancelled, search)
        await room.run(_run_into, done, work)
        group.cancel_scope.cancel()
    return done.result()


def pattern_error(complaint: str, pattern: str) -> BadPattern:
    """Turn ripgrep's error output into the error for a bad pattern."""
    lines = complaint.splitlines() or ["the search failed"]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return bad_pattern(pattern, errors[0] if errors else lines[0].removeprefix("rg: "))


def unnamed_file() -> int:
    """The descriptor of an anonymous temporary file, in memory on Linux."""
    if sys.platform == "linux":
        return os.memfd_create("search")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _run_into(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except Exception as error:
        done.set_exception(error)


async def _stop_when_cancelled(search: Search) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        search.stop()


def _read(process: subprocess.Popen[bytes], take: Callable[[bytes], bool], until: float) -> SearchEnd:
    for chunk in _chunks(process, until):
        if chunk is None:
            return SearchEnd(out_of_time=True)
        if not take(chunk):
            return SearchEnd(stopped=True)
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, until - time.monotonic()))  # for its exit code
    return SearchEnd()


def _chunks(process: subprocess.Popen[bytes], until: float) -> Iterator[bytes | None]:
    """The output as it arrives; None when the time is up."""
    assert process.stdout is not None
    output, poll = process.stdout.fileno(), select.poll()
    poll.register(output, select.POLLIN | select.POLLHUP)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        chunk = os.read(output, _CHUNK)
        if not chunk:
            return
        yield chunk
    yield None
