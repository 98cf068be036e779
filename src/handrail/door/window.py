"""The terminal that a person sits at: its modes, its size, and what happens to it.

Owns the raw mode, which is always undone, and the signals that concern a window. Does not know what is typed, nor
what is shown.
"""

from __future__ import annotations

import os
import signal
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

USUAL_SIZE = (80, 24)
HEEDED = (
    *(signal.SIGWINCH, signal.SIGCONT, signal.SIGHUP, signal.SIGTERM),
    *(
        signal.SIGINT,
        signal.SIGQUIT,
    ),  # by a key only where stdin is no terminal: a raw one sends the key itself
)


class Window:
    """Raw while it is held: every key, Ctrl-C too, is a byte to be read. Without a terminal nothing is changed."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self._usual = termios.tcgetattr(fd) if self.is_terminal else None
        self.wake, self._told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if hasattr(os, "pipe2") else _pipe()
        """Readable when a signal has come; gives its number."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _noticed) for number in HEEDED}
        self.make_raw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.wake)
        os.close(self._told)

    def make_raw(self) -> None:
        if self._usual is not None:
            self._set(raw(self._usual))

    def restore(self) -> None:
        if self._usual is not None:
            self._set(self._usual)

    def size(self) -> tuple[int, int]:
        return size_of(self.fd)

    def signals(self) -> bytes:
        """The numbers of the signals that have come since."""
        try:
            return os.read(self.wake, 512)
        except BlockingIOError:
            return b""

    def _set(self, modes: list[Any]) -> None:
        try:
            # Now: what was typed ahead is for the shell, and a terminal that does not read must not hold us up.
            termios.tcsetattr(self.fd, termios.TCSANOW, modes)
        except termios.error:
            return  # the window is gone, as the next read will tell


def size_of(*descriptors: int) -> tuple[int, int]:
    """Columns and rows of the first of these, or of our input and output, that is a terminal with a size."""
    for fd in (*descriptors, 0, 1, 2):
        try:
            cols, rows = os.get_terminal_size(fd)
        except OSError:
            continue
        if cols > 0 and rows > 0:
            return cols, rows
    return USUAL_SIZE


def raw(usual: list[int | list[bytes | int]]) -> list[int | list[bytes | int]]:
    """These modes without any work of the kernel's on what passes, as `cfmakeraw` has it."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, cc = usual
    assert isinstance(iflag, int)
    assert isinstance(oflag, int)
    assert isinstance(cflag, int)
    assert isinstance(lflag, int)
    assert isinstance(cc, list)
    iflag &= ~(termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP)
    iflag &= ~(termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON)
    lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    keys = [*cc]
    keys[termios.VMIN], keys[termios.VTIME] = 1, 0
    return [iflag, oflag & ~termios.OPOST, cflag, lflag, ispeed, ospeed, keys]


def _noticed(_number: int, _frame: object) -> None:
    """Nothing: the wake-up descriptor tells."""


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    return read, write
