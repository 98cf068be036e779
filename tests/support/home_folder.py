"""Empty folders for a HANDRAIL_HOME, with paths short enough for unix sockets (107 bytes).

They lie in memory if the machine has room: a disk that is busy with an install answers an fsync late, and each event of a
daemon waits for it.
"""

import json
import os
import select
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

MEMORY = "/dev/shm"
LEAST_FREE = 4 << 30
"""Bytes: far more than the homes of a whole run, so that no test meets a full disk."""

START_SECONDS = 5.0
END_SECONDS = 60.0


def make_home_folder() -> Path:
    """The caller removes it."""
    return Path(tempfile.mkdtemp(prefix="hr-", dir=MEMORY if has_memory_folder() else "/tmp"))


def has_memory_folder() -> bool:
    return os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= LEAST_FREE


def end_started_daemon(home: Path) -> None:
    """End the daemon that a door has started in this home, if there is one."""
    if not (home / "logs" / "daemon.out").exists():
        return
    note = home / "daemon.json"
    deadline = time.monotonic() + START_SECONDS
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with suppress(OSError, ValueError):
        pid = int(json.loads(note.read_text())["pid"])
        descriptor = os.pidfd_open(pid)
        try:
            if b"handrail" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGTERM)
                select.select([descriptor], [], [], END_SECONDS)
        finally:
            os.close(descriptor)
