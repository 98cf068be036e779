"""What a wait can be for: a pattern, quiet, the prompt, a port, a file.

Owns when each of these is true. It does not wait (wait.py).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio.to_thread

from handrail.terminal.keeper import KeeperError
from handrail.terminal.waiting.ports import holder, listening
from handrail.terminal.waiting.wait import Condition

if TYPE_CHECKING:
    import os

    from handrail.store.value import Json
    from handrail.terminal.output.tail import Tail
    from handrail.terminal.shells.marks import Marks
    from handrail.terminal.terminal import Terminal
    from handrail.terminal.waiting.matching import Matcher

    Reading = Callable[[], Awaitable[Marks | None]]

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
