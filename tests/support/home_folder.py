"""Empty folders for a HANDRAIL_HOME, with paths short enough for unix sockets (107 bytes).

They lie in memory if the machine has room: a disk that is busy with an install answers an fsync late, and each event of a
daemon waits for it.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = "/dev/shm"
LEAST_FREE = 4 << 30
"""Bytes: far more than the homes of a whole run, so that no test meets a full disk."""


def make_home_folder() -> Path:
    """The caller removes it."""
    return Path(tempfile.mkdtemp(prefix="hr-", dir=MEMORY if has_memory_folder() else "/tmp"))


def has_memory_folder() -> bool:
    return os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= LEAST_FREE
