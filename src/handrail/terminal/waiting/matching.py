"""Watching output for a pattern.

Owns the matching, in a process of its own: a pattern can be made to take for ever, and must not hold up the daemon.
It does not know whose output it is, nor who waits.
"""

from __future__ import annotations

import json
import re
import resource
import struct
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from handrail.terminal.waiting.pattern import BadPattern

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import Process

SECONDS = 10.0
"""How long one piece of output may be looked at."""
WINDOW = 256 * 1024
"""Bytes in which a match must lie: it may span lines, but not any number of them."""
SHOWN = 1000
"""Characters told of a match."""
MOST = 64
"""Patterns watched for at once: each is a process of ten megabytes."""
MEMORY = 256 << 20
"""Bytes that such a process may come to need: a pattern can be made to need any number."""
_ANSWER = 64 * 1024
_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from handrail.terminal.waiting.matching import main; main(sys.argv[1])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What matched."""

    text: str
    line: str
    """The line in which the match begins."""


class Matcher:
    """Is shown output, piece by piece, and says when the pattern is in it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asks, self._answers = process.stdin, BufferedByteReceiveStream(process.stdout)

    async def see(self, data: bytes) -> Hit | None:
        """Whether the pattern is in the text so far. Raises BadPattern when that takes too long."""
        try:
            with anyio.fail_after(SECONDS):
                await self._asks.send(struct.pack(">I", len(data)) + data)
                told = json.loads(await self._answers.receive_until(b"\n", _ANSWER))
        except TimeoutError:
            raise BadPattern(
                f"Matching took longer than {SECONDS:g} s and was given up. Use a simpler pattern."
            ) from None
        except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
            raise BadPattern("The matching broke off. Use a simpler pattern.") from None
        return told and Hit(text=told["text"], line=told["line"])


@asynccontextmanager
async def matching(pattern: str) -> AsyncGenerator[Matcher]:
    """A matcher for as long as it is needed. Raises BadPattern when there are too many."""
    if len(_under_way) >= MOST:
        raise BadPattern(
            f"{MOST} patterns are waited for already. Wait for one of them to be found, then ask again."
        )
    token = object()
    _under_way.add(token)
    try:
        async with _matching(pattern) as matcher:
            yield matcher
    finally:
        _under_way.discard(token)


_under_way: set[object] = set()


@asynccontextmanager
async def _matching(pattern: str) -> AsyncGenerator[Matcher]:
    argv = [sys.executable, "-I", "-c", _CODE, str(Path(__file__).parents[3]), pattern]
    process = await anyio.open_process(argv, stderr=subprocess.DEVNULL)
    try:
        yield Matcher(process)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


def main(pattern: str) -> None:
    """The other side: pieces on stdin, each with its length; an answer for each on stdout."""
    from handrail.terminal.output.screen import plain  # noqa: PLC0415 - the daemon's side has no use for it

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    wanted, seen = re.compile(pattern, re.MULTILINE), b""
    while (piece := _piece(sys.stdin.buffer)) is not None:
        seen = _window(seen + piece)
        text = plain(seen)
        found = wanted.search(text)
        told = found and {"text": found[0][:SHOWN], "line": _line(text, found.start())[:SHOWN]}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def _piece(stream: BinaryIO) -> bytes | None:
    head = stream.read(4)
    return stream.read(struct.unpack(">I", head)[0]) if len(head) == 4 else None


def _window(seen: bytes) -> bytes:
    """The end of it, from the beginning of a line on if there is one."""
    if len(seen) <= WINDOW:
        return seen
    kept = seen[-WINDOW:]
    return kept[kept.find(b"\n") + 1 :]


def _line(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
