"""Waiting for a terminal: until it exits, prints a pattern, falls idle, is back at its prompt, opens a port, writes a file.

Owns why a wait ends, and that it always does: when its terminal ends, when that waits for input, when the time is up.
It does not know who waits, nor what they may see. Nothing here stalls the loop.

What a wait can be for: a pattern, quiet, the prompt, a port, a file.

Waking when a terminal stirs: new output, an exit, a question, another program in its foreground.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.lowlevel
import anyio.to_thread

from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.wait.ports import holder, listening

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskStatus

    from handrail.store.values import Json
    from handrail.terminal.output.tail import Tail
    from handrail.terminal.shell_marks import Marks
    from handrail.terminal.terminal import Asks, Terminal
    from handrail.terminal.wait.pattern_match import Matcher

    Reading = Callable[[], Awaitable[Marks | None]]


Until = Literal["exit", "pattern", "idle", "prompt", "port", "file"]
Why = Literal["exit", "pattern", "idle", "prompt", "port", "file", "waiting_for_input", "timeout"]
LIKELY_SECONDS = 2.0
"""How long what is only likely to be a question must stand: a program that starts up looks like one for a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Woke:
    """Why a wait ended."""

    why: Why
    detail: Json
    """What is known of it: what matched, who listens, the exit code."""


class Condition(ABC):
    """Something about a terminal that can come true."""

    until: Until

    @abstractmethod
    async def met(self) -> Json | None:
        """What there is to tell when it is true now; None when it is not."""

    def due(self) -> float | None:
        """After how many seconds to look again although nothing stirred; None for only then."""
        return None


class Exits(Condition):
    """Its end, which every wait heeds anyway."""

    until = "exit"

    async def met(self) -> Json | None:
        return None


async def wait(
    terminal: Terminal, condition: Condition, timeout: float, asks: Callable[[], Asks | None]
) -> Woke:
    """Return when the condition is true, or the terminal ends, or it `asks`, or the time is up; says which."""
    if (woke := await _now(terminal, condition, asks)) is not None:  # also when there is no time to wait
        return woke
    with anyio.move_on_after(timeout):
        async with stirring(terminal) as stir:
            while (woke := await _now(terminal, condition, asks)) is None:
                await stir.next(_sooner(condition.due(), terminal.asks))
            return woke
    return Woke(why="timeout", detail={})


async def _now(terminal: Terminal, condition: Condition, asks: Callable[[], Asks | None]) -> Woke | None:
    left = terminal.exit  # before the condition looks, so that it sees the last of the output
    if (detail := await condition.met()) is not None:
        return Woke(why=condition.until, detail=detail)
    if left is not None:
        return Woke(why="exit", detail={"exit_code": left.code, "signal": left.signal})
    return Woke(why="waiting_for_input", detail={}) if asks() is not None else None


def _sooner(due: float | None, asks: Asks | None) -> float | None:
    """A question that is only likely is looked at again."""
    if asks is None or asks.sure == "certain":
        return due
    return LIKELY_SECONDS if due is None else min(due, LIKELY_SECONDS)


POLL_SECONDS = 0.1
"""Between looks at what rings no bell: a port, a file, the process tree."""
SETTLED_SECONDS = 0.3
"""Of quiet, before a program that reads is taken to be done with what was typed."""
ECHO_SECONDS = 1.0
"""How long a shell may take to say that it runs what was typed at its prompt."""
_PIECE = 64 * 1024


class Matches(Condition):
    """The pattern is in the text printed since `start`."""

    until = "pattern"

    def __init__(self, tail: Tail, matcher: Matcher, start: int, marks: Reading | None) -> None:
        """With `marks`, what a shell only echoes does not count."""
        self._tail = tail
        self._matcher = matcher
        self._at = start
        self._marks = marks
        self._patience = anyio.current_time() + ECHO_SECONDS

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
        """A shell echoes the line that was typed, which is not yet what came of it."""
        marks = await reading()
        if marks is not None and (ran := [item for item in marks.commands if item.output >= self._at]):
            self._at = ran[0].output
        elif marks is not None and marks.at_prompt and marks.prompt_at < self._at and self._may_come():
            return False
        self._marks = None
        return True

    def _may_come(self) -> bool:
        return anyio.current_time() < self._patience and not self._tail.closed


class Idle(Condition):
    """Nothing was printed or typed for so many seconds."""

    until = "idle"

    def __init__(self, terminal: Terminal, seconds: float) -> None:
        self._terminal = terminal
        self._seconds = seconds
        self._since = anyio.current_time() - quiet(terminal)
        self._stand = self._now()

    async def met(self) -> Json | None:
        if (now := self._now()) != self._stand:
            self._stand, self._since = now, anyio.current_time()
        lasted = anyio.current_time() - self._since
        return {"quiet_seconds": round(lasted, 1)} if lasted >= self._seconds else None

    def due(self) -> float | None:
        return max(0.01, self._since + self._seconds - anyio.current_time())

    def _now(self) -> tuple[int, float | None]:
        return self._terminal.tail.end, self._terminal.last_input_at


class AtPrompt(Condition):
    """The shell waits for a line again. Without marks: its program is in the foreground, reads, and is quiet."""

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
            return {"exit_code": None} if await rests(self._terminal) else None
        if not marks.at_prompt or marks.prompt_at < self._start:
            return None
        last = marks.commands[-1] if marks.commands else None
        return {"exit_code": last.exit_code, "command": last.line} if last else {"exit_code": None}

    def due(self) -> float | None:
        return None if self._is_marked else POLL_SECONDS


class Listens(Condition):
    """Something listens on a port."""

    until = "port"

    def __init__(self, leader: int, port: int) -> None:
        """Of what `leader` started, the holder is told."""
        self._leader = leader
        self._port = port

    async def met(self) -> Json | None:
        return await anyio.to_thread.run_sync(self._look)

    def due(self) -> float | None:
        return POLL_SECONDS

    def _look(self) -> Json | None:
        found = listening(self._port)
        if not found:
            return None
        return {"port": self._port, "pid": holder(found, self._leader)}


class Written(Condition):
    """A file is there that was not there, or was not yet like that, at some moment."""

    until = "file"

    def __init__(self, path: str, look: Callable[[], os.stat_result | None], since: float) -> None:
        """`look` tells what is there; it may take its time. `since` is in seconds since 1970: what was written before
        is old."""
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
        found = self._look()
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


async def rests(terminal: Terminal) -> bool:
    """Its own program has the foreground, reads, and has been quiet: it waits for the next line."""
    if quiet(terminal) < SETTLED_SECONDS:
        return False
    try:
        seen = await terminal.look()
    except KeeperError:
        return False
    return not seen.busy and seen.reading in ("tty", "poll", "hidden")


def quiet(terminal: Terminal) -> float:
    """For how many seconds nothing was printed or typed."""
    last = max(terminal.last_output_at or 0.0, terminal.last_input_at or 0.0, terminal.created_at)
    return max(0.0, time.time() - last)


GATHER_SECONDS = 0.02
"""Between two rings for output: a storm is looked at fifty times a second, not at each of its pieces."""


class Stir:
    """A bell that stays rung until it is heard."""

    def __init__(self) -> None:
        self._bell = anyio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def next(self, seconds: float | None = None) -> bool:
        """Return when something has stirred since this last returned, or after so long; whether it has."""
        with anyio.move_on_after(seconds):
            await self._bell.wait()
        rung, self._bell = self._bell.is_set(), anyio.Event()
        return rung


@asynccontextmanager
async def stirring(terminal: Terminal) -> AsyncGenerator[Stir]:
    """A bell for one terminal."""
    stir, problem = Stir(), None
    async with anyio.create_task_group() as group:
        await group.start(_hear_changes, terminal, stir)
        await group.start(_hear_output, terminal, stir)
        try:
            yield stir
        except Exception as error:  # as it is, and not in a group
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        raise problem


async def _hear_changes(
    terminal: Terminal, stir: Stir, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    while True:
        await terminal.changed()
        stir.ring()


async def _hear_output(
    terminal: Terminal, stir: Stir, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    end = terminal.tail.end
    task_status.started()
    while await _grows(terminal, end):
        end = (
            terminal.tail.end
        )  # before it rings: whoever hears it may look at once, and never again for this much
        stir.ring()
        await anyio.sleep(GATHER_SECONDS)
    stir.ring()


async def _grows(terminal: Terminal, end: int) -> bool:
    """Return when there is output after `end`; False when none can come."""

    async def heard(_data: bytes, _offset: int) -> None:
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    with anyio.CancelScope() as scope:
        await terminal.tail.follow(end, heard)
    return scope.cancelled_caught
