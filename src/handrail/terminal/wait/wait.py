"""Wait for a condition on a terminal: exit, pattern, idle, shell prompt, listening port or written file.

Every wait also ends when the terminal exits, when it waits for input, and at its timeout. `watch_changes` gives a wake-up
signal for output and state changes. Slow checks run in threads. Does not know who waits or what they may see.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.lowlevel
import anyio.to_thread

from handrail.lazy_dataclass import dataclass
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.wait.ports import holder, listening

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskStatus

    from handrail.store.values import Json
    from handrail.terminal.output.tail import Tail
    from handrail.terminal.shell_marks import Marks
    from handrail.terminal.terminal import InputRequest, Terminal
    from handrail.terminal.wait.pattern_match import Matcher

    Reading = Callable[[], Awaitable[Marks | None]]


Until = Literal["exit", "pattern", "idle", "prompt", "port", "file"]
WaitReason = Literal["exit", "pattern", "idle", "prompt", "port", "file", "waiting_for_input", "timeout"]
LIKELY_SECONDS = 2.0
"""Seconds for which a likely question must last before it counts: a starting program briefly looks like a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitResult:
    """Why a wait ended."""

    why: WaitReason
    detail: Json
    """Details by reason: the match, the listening process, the exit code."""


class Condition(ABC):
    """A condition on a terminal."""

    until: Until

    @abstractmethod
    async def met(self) -> Json | None:
        """The details if the condition is true now; else None."""

    def due(self) -> float | None:
        """Seconds after which to check again without a wake-up; None to wait for one."""
        return None


class ProcessExits(Condition):
    """The terminal's exit. Every wait ends with it, so there is no further check."""

    until = "exit"

    async def met(self) -> Json | None:
        return None


async def wait(
    terminal: Terminal, condition: Condition, timeout: float, asks: Callable[[], InputRequest | None]
) -> WaitResult:
    """Return when the condition is true, the terminal exits, `asks` returns a question, or the timeout passes."""
    if (woke := await _now(terminal, condition, asks)) is not None:  # also with a timeout of zero
        return woke
    with anyio.move_on_after(timeout):
        async with watch_changes(terminal) as stir:
            while (woke := await _now(terminal, condition, asks)) is None:
                await stir.next(_next_check(condition.due(), terminal.asks))
            return woke
    return WaitResult(why="timeout", detail={})


async def _now(
    terminal: Terminal, condition: Condition, asks: Callable[[], InputRequest | None]
) -> WaitResult | None:
    exited = terminal.exit  # read before the condition is checked, so that the check sees the last output
    if (detail := await condition.met()) is not None:
        return WaitResult(why=condition.until, detail=detail)
    if exited is not None:
        return WaitResult(why="exit", detail={"exit_code": exited.code, "signal": exited.signal})
    return WaitResult(why="waiting_for_input", detail={}) if asks() is not None else None


def _next_check(due: float | None, asks: InputRequest | None) -> float | None:
    """The time of the next check; a likely question is checked again after `LIKELY_SECONDS`."""
    if asks is None or asks.sure == "certain":
        return due
    return LIKELY_SECONDS if due is None else min(due, LIKELY_SECONDS)


POLL_SECONDS = 0.1
"""Polling interval for sources without a wake-up signal: ports, files, the process tree."""
SETTLED_SECONDS = 0.3
"""Quiet time after which a reading program counts as done with its input."""
ECHO_SECONDS = 1.0
"""Time limit for a shell to write the mark that its command runs, after a line was typed at its prompt."""
_PIECE = 64 * 1024


class PatternMatches(Condition):
    """The pattern matches the text printed since `start`."""

    until = "pattern"

    def __init__(self, tail: Tail, matcher: Matcher, start: int, marks: Reading | None) -> None:
        """With `marks`, the shell's echo of the typed line does not count."""
        self._tail = tail
        self._matcher = matcher
        self._at = start
        self._marks = marks
        self._echo_deadline = anyio.current_time() + ECHO_SECONDS

    async def met(self) -> Json | None:
        if self._marks is not None and not await self._is_past_echo(self._marks):
            return None
        while True:
            data, following = self._tail.read(self._at, _PIECE)
            if not data:
                return None
            self._at = following
            if (hit := await self._matcher.see(data)) is not None:
                return {"matched": hit.text, "line": hit.line}

    def due(self) -> float | None:
        return POLL_SECONDS if self._marks is not None else None

    async def _is_past_echo(self, reading: Reading) -> bool:
        """Move the start behind the shell's echo of the typed line; False while the echo may still come."""
        marks = await reading()
        if marks is not None and (ran := [item for item in marks.commands if item.output >= self._at]):
            self._at = ran[0].output
        elif marks is not None and marks.at_prompt and marks.prompt_at < self._at and self._may_still_echo():
            return False
        self._marks = None
        return True

    def _may_still_echo(self) -> bool:
        return anyio.current_time() < self._echo_deadline and not self._tail.closed


class Idle(Condition):
    """No output and no input for `seconds`."""

    until = "idle"

    def __init__(self, terminal: Terminal, seconds: float) -> None:
        self._terminal = terminal
        self._seconds = seconds
        self._since = anyio.current_time() - quiet_seconds(terminal)
        self._state = self._read_state()

    async def met(self) -> Json | None:
        if (state := self._read_state()) != self._state:
            self._state, self._since = state, anyio.current_time()
        lasted = anyio.current_time() - self._since
        return {"quiet_seconds": round(lasted, 1)} if lasted >= self._seconds else None

    def due(self) -> float | None:
        return max(0.01, self._since + self._seconds - anyio.current_time())

    def _read_state(self) -> tuple[int, float | None]:
        return self._terminal.tail.end, self._terminal.last_input_at


class AtPrompt(Condition):
    """The shell is back at its prompt. Without marks: the leader is in the foreground, reads, and is quiet."""

    until = "prompt"

    def __init__(self, terminal: Terminal, start: int, marks: Reading) -> None:
        self._terminal = terminal
        self._start = start
        self._marks = marks
        self._is_marked = True

    async def met(self) -> Json | None:
        marks = await self._marks()
        self._is_marked = marks is not None and marks.at_prompt is not None
        if marks is None or marks.at_prompt is None:
            return {"exit_code": None} if await is_at_rest(self._terminal) else None
        if not marks.at_prompt or marks.prompt_at < self._start:
            return None
        last = marks.commands[-1] if marks.commands else None
        return {"exit_code": last.exit_code, "command": last.line} if last else {"exit_code": None}

    def due(self) -> float | None:
        return None if self._is_marked else POLL_SECONDS


class PortListens(Condition):
    """A process listens on a port."""

    until = "port"

    def __init__(self, leader: int, port: int) -> None:
        """The details name the process if it descends from `leader`."""
        self._leader = leader
        self._port = port

    async def met(self) -> Json | None:
        return await anyio.to_thread.run_sync(self._look)

    def due(self) -> float | None:
        return POLL_SECONDS

    def _look(self) -> Json | None:
        inodes = listening(self._port)
        if not inodes:
            return None
        return {"port": self._port, "pid": holder(inodes, self._leader)}


class FileWritten(Condition):
    """A file was created or changed."""

    until = "file"

    def __init__(self, path: str, look: Callable[[], os.stat_result | None], since: float) -> None:
        """`look` returns the file's stat result, or None; it may block. Changes before `since`, in seconds since 1970,
        do not count."""
        self._path = path
        self._look = look
        self._since_ns = int(since * 1e9)
        self._before = self._stamp()

    async def met(self) -> Json | None:
        now = await anyio.to_thread.run_sync(self._stamp, abandon_on_cancel=True)
        if now is None or (now == self._before and now[0] < self._since_ns):
            return None
        return {"path": self._path, "existed": self._before is not None, "bytes": now[1]}

    def due(self) -> float | None:
        return POLL_SECONDS

    def _stamp(self) -> tuple[int, int, int] | None:
        stat = self._look()
        return None if stat is None else (stat.st_mtime_ns, stat.st_size, stat.st_ino)


async def is_at_rest(terminal: Terminal) -> bool:
    """Whether the leader is in the foreground, reads, and has been quiet: it waits for the next line."""
    if quiet_seconds(terminal) < SETTLED_SECONDS:
        return False
    try:
        seen = await terminal.look()
    except KeeperError:
        return False
    return not seen.busy and seen.reading in ("tty", "poll", "hidden")


def quiet_seconds(terminal: Terminal) -> float:
    """Seconds since the last output or input."""
    last = max(terminal.last_output_at or 0.0, terminal.last_input_at or 0.0, terminal.created_at)
    return max(0.0, time.time() - last)


GATHER_SECONDS = 0.02
"""Interval between wake-ups for output: a flood of output causes at most fifty checks a second."""


class ChangeSignal:
    """A wake-up signal that stays set until `next` consumes it."""

    def __init__(self) -> None:
        self._bell = anyio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def next(self, seconds: float | None = None) -> bool:
        """Wait for `ring` since the last return, at most `seconds`; returns whether it was called."""
        with anyio.move_on_after(seconds):
            await self._bell.wait()
        rung, self._bell = self._bell.is_set(), anyio.Event()
        return rung


@asynccontextmanager
async def watch_changes(terminal: Terminal) -> AsyncGenerator[ChangeSignal]:
    """A wake-up signal for one terminal: output, exit, questions, control, foreground program."""
    stir, problem = ChangeSignal(), None
    async with anyio.create_task_group() as group:
        await group.start(_forward_changes, terminal, stir)
        await group.start(_forward_output, terminal, stir)
        try:
            yield stir
        except Exception as error:  # raised below, so that the task group does not wrap it
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        raise problem


async def _forward_changes(
    terminal: Terminal, stir: ChangeSignal, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    while True:
        await terminal.changed()
        stir.ring()


async def _forward_output(
    terminal: Terminal, stir: ChangeSignal, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    end = terminal.tail.end
    task_status.started()
    while await _wait_for_output(terminal, end):
        # Read before ringing: the waiter may check immediately, and not again for this output.
        end = terminal.tail.end
        stir.ring()
        await anyio.sleep(GATHER_SECONDS)
    stir.ring()


async def _wait_for_output(terminal: Terminal, end: int) -> bool:
    """Wait for output after `end`; False when the tail is closed without any."""

    async def stop(_data: bytes, _offset: int) -> None:
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    with anyio.CancelScope() as scope:
        await terminal.tail.follow(end, stop)
    return scope.cancelled_caught
