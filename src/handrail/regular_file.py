"""Read small files that another program may have replaced: by a FIFO, which would block, or by a huge file.

Standard library only.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

MOST = 1 << 20
"""Bytes of a small file; bounds memory."""


class NotRegular(OSError):
    """The path is a FIFO, a device, a socket or a folder, or the file is too large."""


def read_regular_file(path: Path, most: int = MOST) -> bytes:
    """The content of a regular file. Never waits for another process. Raises NotRegular or another OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular(f"{path} is not a regular file")
        if status.st_size > most:
            raise NotRegular(f"{path} has more than {most:,} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)
