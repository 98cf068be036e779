"""A stand-in for ripgrep where there is none: the same answers, in the same form, more slowly.

Runs as a process of its own, so that a pattern that never ends can be stopped. Standard library only. It
knows nothing of workspaces or tools.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from handrail.tools.search.glob import Glob
from handrail.tools.search.ignore import NAME, Ignore, read_rules
from handrail.tools.search.query import Query

_FILE_MAX = 50 << 20
"""Bytes of a file that is searched; each is held in memory."""


def main() -> int:
    query = Query(**json.loads(sys.argv[1]))
    out = sys.stdout.buffer
    if query.mode == "list":
        for path in walk(query):
            out.write(os.fsencode(f"./{path}") + b"\0")
        return 0
    try:
        regex = re.compile(query.pattern, _flags(query))
    except re.error as error:
        sys.stderr.write(f"regex parse error:\nerror: {error}\n")
        return 2
    for path, text in _texts(query):
        _answer(query, path, list(_found(query, regex, text)), text.split("\n"), out)
    return 0


def walk(query: Query) -> Iterator[str]:
    """Every file that is not hidden, by path."""
    glob = Glob(query.names) if query.names is not None else None
    for path in _walk("", Ignore.at(str(Path.cwd())), query.git):
        if glob is None or glob.matches(path):
            yield path


def _walk(folder: str, ignore: Ignore, git: bool) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if ignore.hides(entry.name, folder=is_folder):
            continue
        path = f"{folder}/{entry.name}" if folder else entry.name
        if is_folder:
            fresh = git and os.path.lexists(f"{path}/.git")
            yield from _walk(path, ignore.below(entry.name, read_rules(f"{path}/{NAME}"), fresh=fresh), git)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _texts(query: Query) -> Iterator[tuple[str, str]]:
    if query.stdin:
        yield "<stdin>", _text(sys.stdin.buffer.read(_FILE_MAX)) or ""
        return
    for path in walk(query):
        try:
            with open(path, "rb") as file:
                text = _text(file.read(_FILE_MAX))
        except OSError:
            continue
        if text is not None:
            yield f"./{path}", text


def _text(raw: bytes) -> str | None:
    return None if b"\0" in raw else raw.decode(errors="replace").replace("\r\n", "\n")


def _flags(query: Query) -> re.RegexFlag:
    flags = re.MULTILINE
    if query.ignore_case:
        flags |= re.IGNORECASE
    if query.multiline:
        flags |= re.DOTALL
    return flags


def _found(query: Query, regex: re.Pattern[str], text: str) -> Iterator[range]:
    """The lines of each match, counted from 0."""
    if query.multiline:
        for match in regex.finditer(text):
            first = text.count("\n", 0, match.start())
            yield range(first, first + match.group().rstrip("\n").count("\n") + 1)
        return
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines):
        if regex.search(line):
            yield range(number, number + 1)


def _answer(query: Query, path: str, found: list[range], lines: list[str], out: IO[bytes]) -> None:
    if not found:
        return
    if query.mode == "files":
        out.write(os.fsencode(path) + b"\0")
    elif query.mode == "count":
        out.write(os.fsencode(path) + b"\0%d\n" % sum(map(len, found)))
    else:
        _content(query, path, found, lines, out)


def _content(query: Query, path: str, found: list[range], lines: list[str], out: IO[bytes]) -> None:
    matched = {number for span in found for number in span}
    around = {
        number
        for span in found
        for number in range(max(0, span.start - query.context), min(len(lines), span.stop + query.context))
    }
    for number in sorted(matched | around):
        kind = "match" if number in matched else "context"
        if number == len(lines) - 1 and not lines[number]:
            continue
        data = {"path": {"text": path}, "lines": {"text": lines[number] + "\n"}, "line_number": number + 1}
        out.write(json.dumps({"type": kind, "data": data}).encode() + b"\n")
