"""Client of the keeper for one window on one terminal, and a reader of the terminal's spool.

Input is flow-controlled: at most one input message is unacknowledged. Messages are plain dicts, because importing the
classes of `keeper.protocol` would slow the opening of a shell. Tests compare the dicts with those classes.
"""

from __future__ import annotations

import binascii
import json
import os
import socket
import time

from handrail.door.connect import Impostor, dial_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from handrail.paths import Places


PROTOCOL = 3
"""The keeper's protocol version; on a mismatch the keeper's refusal explains the fix."""

ANSWER_SECONDS = 10.0
"""Seconds to wait for the keeper's first reply; bounds the wait for a hung keeper."""

LINE_MAX = 4 << 20
"""Bytes of one message; bounds the memory that a wrong peer can make us use."""

AGAIN_SECONDS = 0.05
"""Seconds before input is sent again to a program that does not read."""


class NotAttached(Exception):
    """The keeper refuses the window or does not run; the message gives the reason."""


class Attached:
    """A connection to the keeper as a window on one terminal."""

    def __init__(self, sock: socket.socket, terminal: str) -> None:
        self.terminal = terminal
        self.size = 0
        """The output offset of the latest notice."""
        self.exit: dict[str, Any] | None = None
        self.trouble = ""
        """The reason why output is no longer written to disk; empty while it is."""
        self.is_lost = False
        """The keeper is gone."""
        self._sock = sock
        self._in = b""
        self._out = bytearray()
        self._number = 0
        self._typing: tuple[int, bytes] | None = None
        self._again_at: float | None = None

    @classmethod
    def attach(cls, places: Places, terminal: str, *, ends: bool) -> Attached:
        """Attach to a terminal; with `ends`, the terminal ends when this connection closes. Raises NotAttached."""
        try:
            sock = dial_path(str(places.keeper_socket))
        except Impostor as impostor:
            raise NotAttached(str(impostor)) from None
        if sock is None:
            raise NotAttached("Handrail's keeper does not answer.")
        attached = cls(sock, terminal)
        try:
            attached._greet(ends)
        except BaseException:
            sock.close()
            raise
        return attached

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    @property
    def wants_to_send(self) -> bool:
        return bool(self._out)

    @property
    def takes_keys(self) -> bool:
        """Whether the keeper has acknowledged the previous input."""
        return self._typing is None

    def type(self, data: bytes) -> None:
        """Send input. Call only while `takes_keys` is true."""
        self._typing = (
            self._send("input", data=binascii.b2a_base64(data, newline=False).decode(), person=True),
            data,
        )
        self._again_at = None

    def resize(self, cols: int, rows: int) -> None:
        self._send("resize", cols=cols, rows=rows)

    def wait_at_most(self) -> float | None:
        """Seconds until `go_on` has something to do."""
        return None if self._again_at is None else max(0.0, self._again_at - time.monotonic())

    def go_on(self) -> None:
        """Send rejected input again when its delay is over."""
        if self._typing and self._again_at is not None and time.monotonic() >= self._again_at:
            self.type(self._typing[1])

    def send(self) -> None:
        """Send as much as the socket accepts."""
        try:
            sent = self._sock.send(self._out)
        except BlockingIOError:
            return
        except OSError:
            self.is_lost = True
            sent = len(self._out)
        del self._out[:sent]

    def receive(self) -> None:
        """Read and handle the keeper's messages."""
        try:
            data = self._sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for line in self._lines(data):
            self._handle(json.loads(line))
        self.is_lost = self.is_lost or not data or len(self._in) > LINE_MAX

    def _greet(self, ends: bool) -> None:
        hello = {
            "is": "hello",
            "protocol": PROTOCOL,
            "want": "attach",
            "terminal": self.terminal,
            "ends": ends,
        }
        self._sock.settimeout(ANSWER_SECONDS)
        try:
            self._sock.sendall(json.dumps(hello).encode() + b"\n")
            first, *others = self._first_lines()
            answer: dict[str, Any] = json.loads(first)
        except (OSError, ValueError) as error:
            raise NotAttached(f"Handrail's keeper does not answer ({error}).") from None
        if answer.get("is") != "welcome":
            raise NotAttached(str(answer.get("why") or "Handrail's keeper gave no reason."))
        self._sock.setblocking(False)
        for line in others:
            self._handle(json.loads(line))

    def _first_lines(self) -> list[bytes]:
        lines: list[bytes] = []
        while not lines:
            data = self._sock.recv(1 << 16)
            if not data or len(self._in) > LINE_MAX:
                raise ConnectionError("it hung up without a word")
            lines = self._lines(data)
        return lines

    def _lines(self, data: bytes) -> list[bytes]:
        *lines, self._in = (self._in + data).split(b"\n")
        return lines

    def _send(self, kind: str, **fields: object) -> int:
        self._number += 1
        message = {"is": kind, "id": self._number, "terminal": self.terminal, **fields}
        self._out += json.dumps(message).encode() + b"\n"
        self.send()
        return self._number

    def _handle(self, message: dict[str, Any]) -> None:
        match message.get("is"):
            case "typed" | "failed" | "done":
                self._handle_reply(message)
            case "kept" | "grown" | "exited" | "swept" | "unrecorded":
                self.size = max(self.size, message["size"])
                self.exit = self.exit or message.get("exit")
                self.trouble = self.trouble or message.get("why") or message.get("unrecorded") or ""
            case _:
                return  # a newer keeper may send other messages

    def _handle_reply(self, message: dict[str, Any]) -> None:
        if self._typing is None or message.get("id") != self._typing[0]:
            return
        if message["is"] == "failed" and self.exit is None:
            self._again_at = (
                time.monotonic() + AGAIN_SECONDS
            )  # the program does not read yet; retry, so no input is lost
        else:
            self._typing = None


SUFFIX = ".seg"


class SpoolReader:
    """Reads a spool directory from an offset, across segments."""

    def __init__(self, directory: str, at: int = 0) -> None:
        self.at = at
        self.lost = 0
        """Bytes skipped because their segments were deleted before they were read."""
        self._directory = directory
        self._start = -1
        self._fd = -1

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes; empty at the end of the output."""
        while self._fd >= 0 or self._open_next():
            data = os.read(self._fd, most)
            if data:
                self.at += len(data)
                return data
            if not self._open_next():
                break
        return b""

    def skip(self, keep: int) -> int:
        """Skip all but the last `keep` bytes; return the number of bytes skipped."""
        starts = self._starts()
        skipped = starts[-1] + _size(self._path(starts[-1])) - keep - self.at if starts else 0
        if skipped <= 0:
            return 0
        self.at += skipped
        self.close()
        return skipped

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._start = -1

    def _open_next(self) -> bool:
        """Open the segment that starts at the current offset or contains it, else the oldest one left."""
        if self._start != self.at and self._open(self.at):
            return True
        while (start := self._find_segment()) is not None and start != self._start:
            if self._open(start):
                return True
        return False

    def _find_segment(self) -> int | None:
        starts = self._starts()
        return max((start for start in starts if start <= self.at), default=starts[0] if starts else None)

    def _open(self, start: int) -> bool:
        try:
            fd = os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self.close()
        self._fd, self._start = fd, start
        if start > self.at:
            self.lost += start - self.at
            self.at = start
        os.lseek(fd, self.at - start, os.SEEK_SET)
        return True

    def _starts(self) -> list[int]:
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        return sorted(int(name.removesuffix(SUFFIX)) for name in names if name.endswith(SUFFIX))

    def _path(self, start: int) -> str:
        return os.path.join(self._directory, f"{start:020d}{SUFFIX}")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
