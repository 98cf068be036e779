"""Writing to whoever reads our output, without ever waiting for them.

Owns how much may be written at once so that a reader that stands still cannot hold up the keys. Does not know what
is written. The descriptor that we were given is shared with whoever started us, so its flags are left alone.
"""

from __future__ import annotations

import os
import select
import stat


class Outlet:
    """Somewhere to write to, once `select` has found it ready."""

    def __init__(self, fd: int) -> None:
        again = _reopened(fd)
        self.fd = fd if again is None else again
        self._is_ours = again is not None
        self._most = 1 << 16 if self._is_ours or _takes_anything(fd) else select.PIPE_BUF

    def write(self, data: memoryview) -> int:
        """As much as is taken now. Raises OSError when nobody will read any more."""
        try:
            return os.write(self.fd, data[: self._most])
        except BlockingIOError:
            return 0

    def close(self) -> None:
        if self._is_ours:
            os.close(self.fd)


def _reopened(fd: int) -> int | None:
    """The same terminal once more, not blocking. Others that are shown here are not affected by that."""
    if not os.isatty(fd):
        return None
    try:
        again = os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # a terminal without a name here, as in a container
        return None
    if os.fstat(again).st_rdev == os.fstat(fd).st_rdev:
        return again
    os.close(again)
    return None


def _takes_anything(fd: int) -> bool:
    """A file, or /dev/null; a pipe that is ready promises room for PIPE_BUF bytes."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))
