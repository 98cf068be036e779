"""The terminal that a person sits at: its modes, its size, and what happens to it.

Owns the raw mode, which is always undone, and the signals that concern a window. Does not know what is typed, nor
what is shown.

Between a window and its terminal: keys in, output out, until one of them ends.

Writing to whoever reads our output, without ever waiting for them.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import termios

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from handrail.door.attach_client import Attached, SpoolReader


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


PIECE = 1 << 16
"""Bytes read at once, of keys or output; bounds what we hold."""

LAG_MAX = 256 << 10
"""Bytes a window may lag behind when a person interrupts: more than this is not worth waiting for."""

KEPT_OF_LAG = 16 << 10
"""Bytes still shown of what a window lagged behind."""

_INTERRUPTS = (b"\x03", b"\x1c", b"\x1a")
_KEY_OF: dict[int, bytes] = {signal.SIGINT: b"\x03", signal.SIGQUIT: b"\x1c"}
_ENDS = (signal.SIGHUP, signal.SIGTERM)
_END_OF_INPUT = b"\x04"


class Relay:
    """Runs until the program has ended and all is shown, or the window or the keeper is gone."""

    def __init__(self, window: Window, terminal: Attached, reader: SpoolReader, outlet: Outlet) -> None:
        self.ended_by: int | None = None
        """The signal that ended us, when it was not the program that ended."""
        self._window, self._terminal, self._reader, self._outlet = window, terminal, reader, outlet
        self._piece = memoryview(b"")
        self._is_dry = False
        """All that we were told of has been read."""
        self._reads_keys = True
        self._line_begins = True
        self._notes: list[bytes] = []
        self._told_trouble = False

    def run(self) -> None:
        self._fill()
        while self.ended_by is None and not self._is_over():
            self._wait()
            self._terminal.go_on()
            self._fill()

    def _is_over(self) -> bool:
        ended = self._terminal.exit is not None or self._terminal.is_lost
        return ended and self._is_dry and not self._piece

    def _wait(self) -> None:
        keeper, keys, wake, out = self._terminal.fileno(), self._window.fd, self._window.wake, self._outlet.fd
        reads = [wake] + [keys] * (self._reads_keys and self._terminal.takes_keys)
        reads += [] if self._terminal.is_lost else [keeper]
        writes = [out] * bool(self._piece) + [keeper] * self._terminal.wants_to_send
        ready, writable, _ = select.select(reads, writes, [], self._terminal.wait_at_most())
        if wake in ready:
            self._heed(self._window.signals())
        if keys in ready:
            self._type()
        if keeper in writable:
            self._terminal.send()
        if keeper in ready:
            self._terminal.receive()
            self._is_dry = False
        if out in writable:
            self._show()

    def _heed(self, numbers: bytes) -> None:
        for number in numbers:
            if number in _KEY_OF and self._terminal.takes_keys:
                self._terminal.type(_KEY_OF[number])
            elif number in _KEY_OF or number in _ENDS:
                self.ended_by = number
            elif number == signal.SIGCONT:
                self._window.make_raw()
        if signal.SIGWINCH in numbers or signal.SIGCONT in numbers:
            self._terminal.resize(*self._window.size())

    def _type(self) -> None:
        try:
            keys = os.read(self._window.fd, PIECE)
        except OSError:
            keys = b""
        if keys:
            self._terminal.type(keys)
            self._line_begins = keys.endswith(b"\n")
            if self._window.is_terminal and keys.endswith(_INTERRUPTS):
                self._catch_up()
        elif self._window.is_terminal:
            self.ended_by = signal.SIGHUP
        else:
            # As on a terminal: the first one ends an unfinished line, the next the input.
            self._terminal.type(_END_OF_INPUT if self._line_begins else _END_OF_INPUT * 2)
            self._reads_keys = False

    def _show(self) -> None:
        try:
            self._piece = self._piece[self._outlet.write(self._piece) :]
        except BrokenPipeError:
            self.ended_by = signal.SIGPIPE
        except OSError:
            self.ended_by = signal.SIGHUP

    def _fill(self) -> None:
        """The next piece, once the last one is shown; the keeper tells when there may be more."""
        if self._piece or self._is_dry:
            return
        lost = self._reader.lost
        data = self._reader.read(PIECE)
        if self._reader.lost > lost:
            self._note(f"{self._reader.lost - lost:,} bytes came faster than this window shows them")
        if not data and self._terminal.trouble and not self._told_trouble:
            self._told_trouble = True
            self._note(f"{self._terminal.trouble} What is printed from here on is not shown.")
        self._is_dry = not data
        self._piece = memoryview(b"".join([*self._notes, data]))
        self._notes = []

    def _catch_up(self) -> None:
        """A terminal forgets what it has not shown yet when it is interrupted. So do we, if that is much."""
        if self._terminal.size - self._reader.at > LAG_MAX:
            passed = self._reader.skip(KEPT_OF_LAG)
            self._note(f"interrupted; {passed:,} bytes are not shown here")
            self._piece = memoryview(b"")

    def _note(self, words: str) -> None:
        # Whatever sequence was cut short is cancelled, and its colours with it.
        self._notes.append(f"\x18\x1b[0m\r\n[Handrail: {words}]\r\n".encode())
