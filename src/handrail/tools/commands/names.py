"""What a pattern in a command stands for right now.

Owns reading a pattern as widely as any shell might: it rather fits a name too many than one too few. It only looks, and
does not judge what it finds (mentions.py).
"""

import fnmatch
import os
from collections.abc import Iterator
from typing import NamedTuple

MOST_NAMES = 2000
"""Names a pattern is compared with; where there are more, nobody can tell."""
_PATTERN = frozenset("*?[")


class Matches(NamedTuple):
    """What was found."""

    paths: tuple[str | None, ...]
    """Where each name really leads, and the folder it is looked for in; None where that cannot be told."""
    poses: bool
    """Some name begins like an option, or may."""


_UNKNOWN = Matches((None,), True)


def matches(folder: str, word: str) -> Matches:
    """Of a word that holds a pattern, in this folder."""
    names = word.split("/")
    first = next((at for at, name in enumerate(names) if not _PATTERN.isdisjoint(name)), len(names))
    if first == len(names) or ".." in names[first:] or word.startswith("-"):
        return _UNKNOWN
    base = os.path.join(folder, "/".join(names[:first]) or ("/" if word.startswith("/") else "."))  # noqa: PTH118
    budget = [MOST_NAMES]
    found = list(_walk(base, [name for name in names[first:] if name], budget))
    if budget[0] <= 0:
        return Matches((None,), first == 0)
    poses = first == 0 and any(os.path.relpath(path, base).startswith("-") for path in found)
    return Matches((os.path.realpath(base), *map(os.path.realpath, found)), poses)


def _walk(base: str, names: list[str], budget: list[int]) -> Iterator[str]:
    """Paths below `base` that fit, name by name, as long as the budget lasts."""
    if not names:
        yield base
    elif _PATTERN.isdisjoint(names[0]):
        yield from _walk(os.path.join(base, names[0]), names[1:], budget)  # noqa: PTH118
    else:
        for name in _fitting(base, names[0], budget):
            yield from _walk(os.path.join(base, name), names[1:], budget)  # noqa: PTH118


def _fitting(folder: str, pattern: str, budget: list[int]) -> Iterator[str]:
    """Shells know classes in brackets that Python does not; many of them let `.*` stand for the folder above, too."""
    wide = pattern.partition("[")[0] + "*" if "[" in pattern else pattern
    hidden = pattern.startswith(".")
    for name in (*((".", "..") if hidden else ()), *_names(folder, budget)):
        if fnmatch.fnmatchcase(name, wide) and (hidden or not name.startswith(".")):
            yield name


def _names(folder: str, budget: list[int]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget[0] -= 1
                if budget[0] <= 0:
                    return
                yield entry.name
    except OSError:
        return
