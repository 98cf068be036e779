"""Running ripgrep: the one runner behind every search of files and of terminals.

Owns which program is run, the arguments that every search has, and the end of its processes. It does not know what is
searched, nor what the records mean. Blocks: `in_thread` runs it beside the event loop.
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
from handrail.terminal.thread_pool import Room

T = TypeVar("T")

MOST_CHARACTERS = 10_000
"""Of a pattern; the system takes no argument longer than 128 KiB."""
ALWAYS = ("--no-config", "--color=never", "--crlf", "--engine=default")
"""A person's own configuration is left out: the answer must not vary. The default engine has no look-around."""
_CHUNK = 1 << 16
_COMPLAINT_MAX = 1 << 16


class NoRipgrep(Exception):
    """There is no program to search with."""


@dataclass(slots=True)
class Ended:
    """How a search ended."""

    complaint: str = ""
    code: int = 0
    out_of_time: bool = False
    stopped: bool = False
    """The taker had enough."""
    too_long: int = 0
    """Records that were dropped because they were too long."""


@cache
def ripgrep() -> str:
    """The system's ripgrep, else the one that came with Handrail. Raises NoRipgrep."""
    beside = Path(sysconfig.get_path("scripts"), "rg")
    found = shutil.which("rg") or (str(beside) if os.access(beside, os.X_OK) else None)
    if found is None:
        raise NoRipgrep(
            "The program rg (ripgrep) was not found, so nothing can be searched or listed. "
            "Install ripgrep, and check with `handrail doctor`."
        )
    return found


class Search:
    """The processes of one search, which another thread may stop."""

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
    ) -> Ended:
        """Run ripgrep; `take` gets its output in chunks and ends it by False. Raises NoRipgrep."""
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
        """It is gone after this, whatever it was doing."""
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        process.wait()
        self._running.discard(process)

    def stop(self) -> None:
        """From another thread: end all processes of this search, also one that starts later."""
        self._stopped = True
        for process in tuple(self._running):
            process.kill()


async def in_thread(room: Room, search: Search, work: Callable[[], T]) -> T:
    """Do the work of a search in a thread. Cancellation stops the search and waits for its end."""
    done: Future[T] = Future()  # carries an error past the task group, which would wrap it
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_cancelled, search)
        await room.run(_settle, done, work)
        group.cancel_scope.cancel()
    return done.result()


def complain(complaint: str, pattern: str) -> BadPattern:
    """The error for a pattern that ripgrep refuses."""
    lines = complaint.splitlines() or ["the search failed"]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return bad_pattern(pattern, errors[0] if errors else lines[0].removeprefix("rg: "))


def unnamed_file() -> int:
    """An open file without a name, which is gone when it is closed; in memory where the system has such."""
    if sys.platform == "linux":
        return os.memfd_create("search")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _settle(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except Exception as error:
        done.set_exception(error)


async def _stop_when_cancelled(search: Search) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        search.stop()


def _read(process: subprocess.Popen[bytes], take: Callable[[bytes], bool], until: float) -> Ended:
    for chunk in _chunks(process, until):
        if chunk is None:
            return Ended(out_of_time=True)
        if not take(chunk):
            return Ended(stopped=True)
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, until - time.monotonic()))  # for its exit code
    return Ended()


def _chunks(process: subprocess.Popen[bytes], until: float) -> Iterator[bytes | None]:
    """The output as it comes; None when the time is up."""
    assert process.stdout is not None
    output, poll = process.stdout.fileno(), select.poll()
    poll.register(output, select.POLLIN | select.POLLHUP)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        chunk = os.read(output, _CHUNK)
        if not chunk:
            return
        yield chunk
    yield None
