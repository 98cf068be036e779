"""Between a window and its terminal: keys in, output out, until one of them ends.

Owns the one loop of `handrail shell` and what ends it. Holds one piece of output and one of input, however fast the
terminal prints and however slowly the window shows it. Does not know how any of its parts does its work.
"""

from __future__ import annotations

import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail.door.attached import Attached
    from handrail.door.outlet import Outlet
    from handrail.door.spool_reader import SpoolReader
    from handrail.door.window import Window

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
