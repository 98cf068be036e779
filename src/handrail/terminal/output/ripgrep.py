"""Asking ripgrep for lines: which program answers, and the bounds on what it may cost.

Owns the program's arguments and answers. It does not know what the files hold. Blocks: call it in a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SECONDS = 10.0
"""How long one search may take; what was found until then is given."""
MOST_PATTERN = 10_000
"""Characters; the system takes no argument longer than 128 KiB."""
_RECORD = re.compile(rb"^/dev/fd/(\d+)\0(\d+):(\d+):(\d+):|^<stdin>\0(\d+):(\d+):(\d+):", re.MULTILINE)
_ALWAYS = (
    "--no-config",
    "--color=never",
    "--no-heading",
    "--with-filename",
    "--null",
    "--text",
    "--crlf",
    "--encoding=none",
    "--mmap",
    "--line-number",
    "--column",
    "--byte-offset",
    "--max-columns=1",  # the lines are read where they stand, however long they are
)
_TWIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from handrail.terminal.output.scan import main; main()"
)


class BadPattern(Exception):
    """The pattern is no regular expression, and why."""


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """A line that matches, in an open file or, with fd -1, in what was given on stdin."""

    fd: int
    line: int
    """From one."""
    column: int
    """Bytes from the beginning of the line to the match, from zero."""
    offset: int
    """Where the line begins."""


@cache
def ripgrep() -> str | None:
    """The system's ripgrep, else the one that came with Handrail."""
    beside = Path(sysconfig.get_path("scripts"), "rg")
    return shutil.which("rg") or (str(beside) if os.access(beside, os.X_OK) else None)


class Asking:
    """One search, which another thread may stop."""

    def __init__(self, pattern: str, most: int, case_insensitive: bool) -> None:
        _check(pattern)
        self._options = (f"--max-count={most}", *(("--ignore-case",) if case_insensitive else ()))
        self._pattern = pattern
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def lines(self, fds: Sequence[int], stdin: bytes = b"") -> tuple[list[Hit], bool]:
        """The first matching lines of each open file, and whether there was time to look at all. Raises BadPattern."""
        command = (*_program(), *_ALWAYS, *self._options, f"--regexp={self._pattern}", "--")
        files = [f"/dev/fd/{fd}" for fd in fds]
        process = self.start((*command, *files, "-"), pass_fds=fds, stdin=True)
        try:
            out, said = process.communicate(stdin, SECONDS)
        except subprocess.TimeoutExpired as late:
            return _hits(late.stdout or b""), False
        finally:
            self.end(process)
        if process.returncode == 2 and not out:
            raise BadPattern(_complaint(said.decode(errors="replace"), self._pattern))
        return _hits(out), process.returncode in (0, 1)

    def start(
        self, command: Sequence[str], *, pass_fds: Sequence[int], stdin: bool = False
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
            env={},
            cwd="/",
        )
        self._running.add(process)
        if self._stopped:
            process.kill()
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """It is gone after this, whatever it was doing."""
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        process.wait()
        self._running.discard(process)

    def stop(self) -> None:
        """From another thread: whoever waits for a program of this search is released at once."""
        self._stopped = True
        for process in tuple(self._running):
            process.kill()


def _check(pattern: str) -> None:
    """Raises BadPattern for what no program can be given as an argument."""
    if len(pattern) > MOST_PATTERN:
        raise BadPattern(
            f"The pattern has {len(pattern):,} characters, and {MOST_PATTERN:,} are possible. Shorten it."
        )
    if "\0" in pattern or any("\ud800" <= char <= "\udfff" for char in pattern):
        raise BadPattern(
            "The pattern holds a character that cannot be matched (NUL, or half of one). Remove it."
        )


def _program() -> tuple[str, ...]:
    program = ripgrep()
    if program is not None:
        return (program,)
    return (sys.executable, "-I", "-c", _TWIN, str(Path(__file__).parents[3]))


def _hits(out: bytes) -> list[Hit]:
    found: list[Hit] = []
    for record in _RECORD.finditer(out):
        fd, *numbers = (
            (record[1], record[2], record[3], record[4]) if record[1] else (b"-1", *record.groups()[4:])
        )
        line, column, offset = (int(number) for number in numbers)
        found.append(Hit(int(fd), line, column - 1, offset))
    return found


def _complaint(said: str, pattern: str) -> str:
    errors = [line.removeprefix("error: ") for line in said.splitlines() if line.startswith("error: ")]
    why = (
        errors[0] if errors else (said.strip().splitlines() or ["the search failed"])[0].removeprefix("rg: ")
    )
    shown = pattern if len(pattern) <= 60 else pattern[:59] + "…"
    return (
        f"The pattern {shown} cannot be searched for: {why.rstrip('.')}. It is a regular expression; put a backslash "
        "before a character that is meant literally."
    )
