"""The program behind a name, as the shell would find it now.

Owns what an answer is bound to: which file it is, and that it has not changed. It starts nothing.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from pydantic import JsonValue

from handrail.gate.shell.shell_parser import Part
from handrail.store.value import Json


def programs(parts: Iterable[Part], cwd: str, path: str) -> Json:
    """By name: path, device, inode, size and the kernel's own time of the last change; None where there is none."""
    names = dict.fromkeys(part.words[0] for part in parts)
    return {name: facts(name, cwd, path) for name in names}


def facts(name: str, cwd: str, path: str) -> JsonValue:
    """Of one program."""
    folders = [""] if "/" in name else path.split(":")
    for folder in folders:
        candidate = Path(cwd, folder, name)
        try:
            found = candidate.stat()
        except (OSError, ValueError):
            continue
        if os.access(candidate, os.X_OK) and not stat.S_ISDIR(found.st_mode):
            return [os.path.realpath(candidate), found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns]
    return None
