"""Run ripgrep, for every search of files and of terminal output.

Adds the common arguments and ends the processes of a search. The launcher finds and starts them. `Search` blocks;
`run_search` runs it in a thread. Does not parse the output.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache, partial
from typing import TypeVar

import anyio

from handrail.launcher.child import LOST, Child, LaunchError, start_program
from handrail.launcher.trusted_programs import find_program
from handrail.lazy_dataclass import dataclass
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
    """ripgrep was not found or cannot be started; the message gives the reason."""


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
    """The path of the ripgrep installed with Handrail, else of the system's. Raises NoRipgrep."""
    path = find_program("rg", os.environ.get("PATH", ""), bundled=True)
    if path is None:
        raise NoRipgrep(
            "The program rg (ripgrep) was not found, so nothing can be searched or listed. "
            "Install ripgrep, and check with `handrail doctor`."
        )
    return path


class Search:
    """The processes of one search. `stop` may be called from another thread."""

    def __init__(self) -> None:
        self._running: set[Child] = set()
        self._stopped = False

    def run(
        self,
        arguments: Sequence[str],
        take: Callable[[bytes], bool],
        *,
        seconds: float,
        cwd: str | int = "/",
        stdin: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> SearchEnd:
        """Run ripgrep; `take` gets its output in chunks and returns False to stop it. Raises NoRipgrep.

        `cwd` is a path or the descriptor of a folder.
        """
        command, complaints = (ripgrep(), *ALWAYS, *arguments), unnamed_file()
        try:
            start = partial(
                start_program, command, cwd=cwd, stdin=stdin, stderr=complaints, pass_fds=pass_fds
            )
            with self.hold(start) as child:
                ended = _read(child, take, time.monotonic() + seconds)
            complaint = child.error or os.pread(complaints, _COMPLAINT_MAX, 0).decode(errors="replace")
        finally:
            os.close(complaints)
        ended.code = LOST if child.code is None else child.code
        ended.complaint = "" if ended.stopped else complaint.strip()
        return ended

    @contextmanager
    def hold(self, start: Callable[[], Child]) -> Generator[Child]:
        """Start a process of this search. It is killed and reaped at the end of the block. Raises NoRipgrep."""
        try:
            child = start()
        except LaunchError as error:
            raise NoRipgrep(str(error)) from error
        self._running.add(child)
        if self._stopped:
            child.kill()
        try:
            yield child
        finally:
            child.close()
            self._running.discard(child)

    def stop(self) -> None:
        """Kill all processes of this search, including any that starts later. Thread-safe."""
        self._stopped = True
        for child in tuple(self._running):
            child.kill()


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


def _read(child: Child, take: Callable[[bytes], bool], until: float) -> SearchEnd:
    for chunk in _chunks(child.output, until):
        if chunk is None:
            return SearchEnd(out_of_time=True)
        if not take(chunk):
            return SearchEnd(stopped=True)
    child.wait(max(0.0, until - time.monotonic()))  # for its exit code
    return SearchEnd()


def _chunks(output: int, until: float) -> Iterator[bytes | None]:
    """The output as it arrives; None when the time is up."""
    poll = select.poll()
    poll.register(output, select.POLLIN | select.POLLHUP)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        chunk = os.read(output, _CHUNK)
        if not chunk:
            return
        yield chunk
    yield None
