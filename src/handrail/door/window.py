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
ENDING = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
HEEDED = (*ENDING, signal.SIGWINCH, signal.SIGCONT)


class Interrupted(Exception):
    """A signal came that ends us, before there was anything to show."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Window:
    """Held by us until the end, when it is again as it was. Without a terminal nothing is changed.

    At first it is quiet: what is typed ahead is for whoever will be shown, and they will show it. Ctrl-C still
    interrupts. Once it is raw, every key is a byte to be read, and signals are told by `wake`.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.wake, self._told = os.pipe()
        """Readable when a signal has come; gives its number."""
        self._usual = termios.tcgetattr(fd) if self.is_terminal else None
        self._before = {number: signal.getsignal(number) for number in HEEDED}

    def __enter__(self) -> Self:
        for number in ENDING:
            signal.signal(number, _interrupt)
        if self._usual is not None:
            self._set(quiet(self._usual))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._usual is not None:
            self._set(self._usual)
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.wake)
        os.close(self._told)

    def begin(self) -> None:
        """From now on somebody is shown in it."""
        os.set_blocking(self.wake, False)
        os.set_blocking(self._told, False)
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        for number in HEEDED:
            signal.signal(number, _noticed)
        self.make_raw()

    def make_raw(self) -> None:
        if self._usual is not None:
            self._set(raw(self._usual))

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


def quiet(usual: list[Any]) -> list[Any]:
    """Every key as it is, none shown; but signals, and the output, as usual."""
    made = raw(usual)
    made[1] = usual[1]
    made[3] |= usual[3] & termios.ISIG
    return made


def raw(usual: list[Any]) -> list[Any]:
    """These modes without any work of the kernel's on what passes, as `cfmakeraw` has it."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, keys = usual
    iflag &= ~(termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP)
    iflag &= ~(termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON)
    lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    keys = [*keys]
    keys[termios.VMIN], keys[termios.VTIME] = 1, 0
    return [iflag, oflag & ~termios.OPOST, cflag, lflag, ispeed, ospeed, keys]


def _interrupt(number: int, _frame: object) -> None:
    raise Interrupted(number)


def _noticed(_number: int, _frame: object) -> None:
    """Nothing: the wake-up descriptor tells."""
