"""A question about files, as arguments of ripgrep.

Owns what can be asked and how it is written as arguments. It runs nothing (seek.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Mode = Literal["list", "content", "files", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for, in the folder it is run in or in its standard input."""

    mode: Mode
    pattern: str = ""
    ignore_case: bool = False
    multiline: bool = False
    context: int = 0
    names: str | None = None
    """A glob for file names; a hint that spares reading others."""
    git: bool = False
    """The folder is in a git work tree, so that .gitignore files above it count."""
    stdin: bool = False


def arguments(query: Query) -> list[str]:
    """The same for ripgrep."""
    return [*_ALWAYS, *_walking(query), *_asking(query)]


def separator(query: Query) -> bytes:
    """What ends a record of the answer."""
    return b"\0" if query.mode in ("list", "files") else b"\n"


_ALWAYS = (
    "--no-messages",
    "--sort=path",
    "--hidden",
    "--glob=!.git",
)


def _walking(query: Query) -> Iterator[str]:
    yield from ("--no-ignore-global", "--no-ignore-dot", "--no-ignore-exclude")
    if not query.git:
        yield from ("--no-require-git", "--no-ignore-parent")
    if query.names is not None:
        yield from (f"--type-add=asked:{query.names}", "--type=asked")


def _asking(query: Query) -> Iterator[str]:
    match query.mode:
        case "list":
            yield from ("--files", "--null", "./")
            return
        case "content":
            yield from ("--json", f"--context={query.context}")
        case "files":
            yield from ("--files-with-matches", "--null")
        case "count":
            yield from ("--count", "--with-filename", "--null")
    if query.ignore_case:
        yield "--ignore-case"
    if query.multiline:
        yield from ("--multiline", "--multiline-dotall")
    yield from (f"--regexp={query.pattern}", "--", "-" if query.stdin else "./")
