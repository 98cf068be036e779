"""Whether a text is a regular expression that we want to work with.

Owns the bounds on a pattern. To read one can take seconds (a range in any letter case is looked at letter by letter),
so anything but a short and simple one is read in a process of its own. It matches nothing (matching.py).
"""

from __future__ import annotations

import re
import subprocess
import sys

import anyio

MOST = 1000
"""Characters of a pattern: more is a program, and takes a program's time."""
SHORT = 100
"""Characters that are read at once, where nothing in them changes how letters compare."""
SECONDS = 3.0
"""For the reading of a longer one."""
_CODE = (
    "import re, sys\n"
    "try:\n re.compile(sys.argv[1], re.MULTILINE)\n"
    "except Exception as error:\n print(error)\n"
)


class BadPattern(Exception):
    """The pattern is no regular expression, or too much of one; the sentence says which."""


async def check(pattern: str) -> None:
    """Raises BadPattern for a pattern that is none, or takes too long to read."""
    if len(pattern) > MOST:
        raise BadPattern(
            f"The pattern has {len(pattern):,} characters, and {MOST:,} are possible. Shorten it."
        )
    if "\0" in pattern or not _is_text(pattern):
        raise BadPattern(
            "The pattern holds a character that cannot be matched (NUL, or half of one). Remove it."
        )
    if len(pattern) <= SHORT and "(?" not in pattern:
        why = _read(pattern)
    else:
        why = await _read_apart(pattern)
    if why:
        raise BadPattern(f"The pattern is not a regular expression: {why}. Mend it.")


def _is_text(pattern: str) -> bool:
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read(pattern: str) -> str:
    """Why it cannot be read; nothing when it can."""
    try:
        re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""


async def _read_apart(pattern: str) -> str:
    argv = [sys.executable, "-I", "-S", "-c", _CODE, pattern]
    with anyio.move_on_after(SECONDS):
        done = await anyio.run_process(argv, stderr=subprocess.DEVNULL, check=False)
        return done.stdout.decode(errors="replace").strip()
    raise BadPattern(f"To read the pattern took longer than {SECONDS:g} s. Use a simpler one.")
