"""The stand-in for ripgrep where there is none, in a process of its own: same arguments as far as used, same answers.

Knows Python's regular expressions only. Who starts it bounds its time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    options, files = _arguments(sys.argv[1:])
    flags = re.IGNORECASE if "--ignore-case" in options else 0
    try:
        wanted = re.compile(_value(options, "--regexp=").encode(), flags)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None
    most = int(_value(options, "--max-count="))
    for file in files:
        name = "<stdin>" if file == "-" else file
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        for line, column, offset in _found(wanted, data, most):
            sys.stdout.write(f"{name}\0{line}:{column}:{offset}:\n")


def _found(wanted: re.Pattern[bytes], data: bytes, most: int) -> Iterator[tuple[int, int, int]]:
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if offset == len(data):
            return
        match = wanted.search(line.removesuffix(b"\r"))
        if match is not None:
            yield number, match.start() + 1, offset
            most -= 1
        if not most:
            return
        offset += len(line) + 1


def _arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _value(options: list[str], name: str) -> str:
    return next(option.removeprefix(name) for option in options if option.startswith(name))
