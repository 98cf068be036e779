"""Lines of a command's output that match a pattern.

Owns the matching, in a short-lived process of its own: a pattern that never ends, or an output of many megabytes,
must not hold up the daemon. It does not know commands.
"""

import re
import subprocess
import sys
from pathlib import Path

import anyio
from anyio.abc import ByteSendStream, Process

from handrail.gate.tool import Refusal
from handrail.terminal.output.screen import plain
from handrail.terminal.output.tail import Tail
from handrail.terminal.waiting.pattern import BadPattern
from handrail.terminal.waiting.pattern import check as check_pattern

SECONDS = 10.0
"""How long the matching may take; a pattern can be made to take for ever."""
MOST_LINES = 500
LINE_CHARS = 1000
"""Shown of one line."""
LINE_BYTES = 1 << 20
"""Looked at as one line, of an output without line ends."""
_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from handrail.tools.search.grep import main; main(sys.argv[1])"


async def check(pattern: str) -> None:
    """Raises Refusal for a pattern that is none."""
    try:
        await check_pattern(pattern)
    except BadPattern as problem:
        raise Refusal(f"`output_grep`: {problem} Nothing was run.") from None


async def grep(pattern: str, tail: Tail, begin: int = 0, end: int | None = None) -> str:
    """The matching lines, each with its number; of all that is kept, or of what lies between two offsets."""
    span = (max(begin, tail.first), tail.end if end is None else end)
    package = str(Path(__file__).parents[3])
    argv = [sys.executable, "-I", "-c", _CODE, package, pattern]
    with anyio.move_on_after(SECONDS) as limit:
        async with await anyio.open_process(argv, stderr=subprocess.DEVNULL) as process:
            return await _ask(process, tail, span)
    assert limit.cancelled_caught
    return f"[matching took longer than {SECONDS:g} s and was given up]"


async def _ask(process: Process, tail: Tail, span: tuple[int, int]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    found: list[bytes] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process.stdin, tail, span)
            found.extend([chunk async for chunk in process.stdout])
            group.cancel_scope.cancel()
    finally:
        if process.returncode is None:
            process.kill()
    return b"".join(found).decode(errors="replace")


async def _feed(stdin: ByteSendStream, tail: Tail, span: tuple[int, int]) -> None:
    after, end = span
    try:
        async with stdin:
            while after < end:
                data, after = tail.read(after, min(65536, end - after))
                if not data:
                    return
                await stdin.send(data)
    except anyio.BrokenResourceError:
        return  # it has found enough


def main(pattern: str) -> None:
    """The other side: output on stdin, matching lines on stdout."""
    wanted = re.compile(pattern)
    found = 0
    for number, line in enumerate(iter(lambda: sys.stdin.buffer.readline(LINE_BYTES), b""), 1):
        text = plain(line.rstrip(b"\r\n"))
        if wanted.search(text):
            sys.stdout.write(f"{number}: {text[:LINE_CHARS]}\n")
            found += 1
        if found == MOST_LINES:
            sys.stdout.write(f"[stopped after {MOST_LINES} matching lines]\n")
            break
    if not found:
        sys.stdout.write("[no line matches]\n")
