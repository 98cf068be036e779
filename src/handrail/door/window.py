"""The person's own terminal window: raw mode, size, signals, and the relay of keys and output.

`Window` restores the terminal's modes on exit, `Outlet` writes output without blocking, `Relay` is the loop between the
window and a Handrail terminal.
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
HANDLED = (*ENDING, signal.SIGWINCH, signal.SIGCONT)


class Interrupted(Exception):
    """A terminating signal arrived before the terminal was shown."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Window:
    """Context manager that changes the terminal's modes and restores them on exit. Changes nothing on a non-terminal.

    First the window is in quiet mode: no echo, because typed-ahead keys are for the program, which echoes them itself;
    Ctrl-C still interrupts. After `begin` it is raw: every key is read as bytes, and signals are read from `wake`.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.wake, self._waker = os.pipe()
        """`wake` is a descriptor from which the numbers of received signals are read."""
        self._usual = termios.tcgetattr(fd) if self.is_terminal else None
        self._before = {number: signal.getsignal(number) for number in HANDLED}

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
        os.close(self._waker)

    def begin(self) -> None:
        """Switch to raw mode, and deliver signals through `wake`."""
        os.set_blocking(self.wake, False)
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for number in HANDLED:
            signal.signal(number, _do_nothing)
        self.make_raw()

    def make_raw(self) -> None:
        if self._usual is not None:
            self._set(raw(self._usual))

    def size(self) -> tuple[int, int]:
        return size_of(self.fd)

    def signals(self) -> bytes:
        """Read the numbers of the signals received since the last call."""
        try:
            return os.read(self.wake, 512)
        except BlockingIOError:
            return b""

    def _set(self, modes: list[Any]) -> None:
        try:
            # TCSANOW: keep typed-ahead input, and do not wait for output to drain.
            termios.tcsetattr(self.fd, termios.TCSANOW, modes)
        except termios.error:
            return  # the window is gone; the next read detects it


def size_of(*descriptors: int) -> tuple[int, int]:
    """Columns and rows of the first descriptor that is a terminal with a size; also tries stdin, stdout and stderr."""
    for fd in (*descriptors, 0, 1, 2):
        try:
            cols, rows = os.get_terminal_size(fd)
        except OSError:
            continue
        if cols > 0 and rows > 0:
            return cols, rows
    return USUAL_SIZE


def quiet(usual: list[Any]) -> list[Any]:
    """Raw input without echo, but with signal keys and normal output processing."""
    modes = raw(usual)
    modes[1] = usual[1]
    modes[3] |= usual[3] & termios.ISIG
    return modes


def raw(usual: list[Any]) -> list[Any]:
    """Raw modes, as set by `cfmakeraw`."""
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


def _do_nothing(_number: int, _frame: object) -> None:
    """Empty handler: the signal is read from the wake-up descriptor."""


class Outlet:
    """Non-blocking writer; write once `select` reports the descriptor ready."""

    def __init__(self, fd: int) -> None:
        reopened = _reopen(fd)
        self.fd = fd if reopened is None else reopened
        self._is_ours = reopened is not None
        self._most = 1 << 16 if self._is_ours or _never_blocks(fd) else select.PIPE_BUF

    def write(self, data: memoryview) -> int:
        """Write as much as fits; return the number of bytes. Raises OSError if the reader is gone."""
        try:
            return os.write(self.fd, data[: self._most])
        except BlockingIOError:
            return 0

    def close(self) -> None:
        if self._is_ours:
            os.close(self.fd)


def _reopen(fd: int) -> int | None:
    """Open the same terminal again with O_NONBLOCK, which does not affect other processes that share `fd`."""
    if not os.isatty(fd):
        return None
    try:
        reopened = os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # the terminal has no path here, as in a container
        return None
    if os.fstat(reopened).st_rdev == os.fstat(fd).st_rdev:
        return reopened
    os.close(reopened)
    return None


def _never_blocks(fd: int) -> bool:
    """Whether it is a file or /dev/null. A pipe that is ready only guarantees room for PIPE_BUF bytes."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))


PIECE = 1 << 16
"""Bytes per read of keys or output; bounds memory."""

LAG_MAX = 256 << 10
"""Bytes a window may lag behind before an interrupt skips output: a person does not want to wait for more."""

KEPT_OF_LAG = 16 << 10
"""Bytes still shown after such a skip."""

_INTERRUPTS = (b"\x03", b"\x1c", b"\x1a")
_KEY_OF: dict[int, bytes] = {signal.SIGINT: b"\x03", signal.SIGQUIT: b"\x1c"}
_ENDS = (signal.SIGHUP, signal.SIGTERM)
_END_OF_INPUT = b"\x04"


class Relay:
    """Runs until the program has ended and its output is shown, or the window or the keeper is gone."""

    def __init__(self, window: Window, terminal: Attached, reader: SpoolReader, outlet: Outlet) -> None:
        self.ended_by: int | None = None
        """The signal that ended the relay; None if the program or the keeper ended it."""
        self._window, self._terminal, self._reader, self._outlet = window, terminal, reader, outlet
        self._piece = memoryview(b"")
        self._is_dry = False
        """Whether all output up to the latest notice has been read."""
        self._reads_keys = True
        self._line_begins = True
        self._notes: list[bytes] = []
        self._showed_trouble = False

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
            self._handle_signals(self._window.signals())
        if keys in ready:
            self._type()
        if keeper in writable:
            self._terminal.send()
        if keeper in ready:
            self._terminal.receive()
            self._is_dry = False
        if out in writable:
            self._show()

    def _handle_signals(self, numbers: bytes) -> None:
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
            # As on a terminal: the first Ctrl-D ends an unfinished line, the second ends the input.
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
        """Read the next piece of output, once the last one is shown and the keeper has announced more."""
        if self._piece or self._is_dry:
            return
        lost = self._reader.lost
        data = self._reader.read(PIECE)
        if self._reader.lost > lost:
            self._note(f"{self._reader.lost - lost:,} bytes came faster than this window shows them")
        if not data and self._terminal.trouble and not self._showed_trouble:
            self._showed_trouble = True
            self._note(f"{self._terminal.trouble} What is printed from here on is not shown.")
        self._is_dry = not data
        self._piece = memoryview(b"".join([*self._notes, data]))
        self._notes = []

    def _catch_up(self) -> None:
        """Skip output on an interrupt if the window lags far behind, as a terminal discards its unshown output."""
        if self._terminal.size - self._reader.at > LAG_MAX:
            skipped = self._reader.skip(KEPT_OF_LAG)
            self._note(f"interrupted; {skipped:,} bytes are not shown here")
            self._piece = memoryview(b"")

    def _note(self, text: str) -> None:
        # Cancel an incomplete escape sequence and reset the colours.
        self._notes.append(f"\x18\x1b[0m\r\n[Handrail: {text}]\r\n".encode())
