"""Find programs in places that only root can write, and check whether a path is such a place.

A program is trusted if the file and every folder above it belong to root and only root may write them. A program that our
own installation brings along comes first. The order of PATH decides nothing: an approved command can put a program into a
folder such as `~/.local/bin`.
"""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Iterator
from pathlib import Path

SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
"""Searched after the trusted folders of PATH."""
LINKS_MAX = 40
"""Symlinks followed from one path, as in the kernel."""
SHARED_WRITE = stat.S_IWGRP | stat.S_IWOTH


def find_program(name: str, search_path: str = "", *, bundled: bool = False) -> str | None:
    """The absolute path of a trusted program; with `bundled`, first the one that our installation brings along.

    Programs in folders of `search_path` (a PATH) count only if they are trusted.
    """
    own = Path(sysconfig.get_path("scripts"), name)
    if bundled and _is_executable(own):
        return str(own)
    for folder in dict.fromkeys((*search_path.split(os.pathsep), *SYSTEM_FOLDERS)):
        program = Path(folder, name)
        if program.is_absolute() and _is_executable(program) and find_untrusted(program) is None:
            return str(program)
    return None


def find_untrusted(path: Path) -> Path | None:
    """The first place on the way to this path that someone other than root can change; None if there is no such place."""
    return next((place for hop in _links(path) for place in _untrusted_above(hop)), None)


def _links(path: Path) -> Iterator[Path]:
    """The path itself, and each path that it leads to by symlinks."""
    for _ in range(LINKS_MAX):
        path = Path(os.path.realpath(path.parent), path.name)
        yield path
        try:
            path = path.parent / path.readlink()
        except OSError:  # no symlink
            return


def _untrusted_above(path: Path) -> Iterator[Path]:
    """Those of a path and the folders above it that are not protected, innermost first."""
    owner_inside = None
    for place in (path, *path.parents):
        try:
            status = place.lstat()
        except OSError:
            yield place
            return
        if not _is_protected(status, owner_inside):
            yield place
        owner_inside = status.st_uid


def _is_protected(status: os.stat_result, owner_inside: int | None) -> bool:
    """Whether only root can change it. A folder with the sticky bit protects an entry that belongs to root."""
    if status.st_uid != 0:
        return False
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & SHARED_WRITE:
        return True
    return bool(status.st_mode & stat.S_ISVTX) and owner_inside == 0


def _is_executable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:  # in a folder that this user may not search
        return False
