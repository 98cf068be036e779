"""The least that runs a command in a terminal: a PTY, a child, a loop that reads. No record, no tree, no limits."""

import os
import shutil
import subprocess

CHUNK = 64 * 1024


class PtyChild:
    """A shell line in a PTY of its own."""

    def __init__(self, command: str) -> None:
        self._master, slave = os.openpty()
        shell = shutil.which("bash") or "/bin/sh"
        self._process = subprocess.Popen(
            [shell, "-c", command], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def drain(self) -> int:
        """Read all it prints, and reap it; how many bytes there were."""
        count = 0
        try:
            while chunk := os.read(self._master, CHUNK):
                count += len(chunk)
        except OSError:  # EIO: nobody holds the other side any more
            pass
        os.close(self._master)
        self._process.wait()
        return count
