"""The first line each way on the daemon's socket: who calls and what they want, and whether they may.

Owns the shape of that line and its bounds. Does not know what is spoken afterwards.
"""

from __future__ import annotations

import json
import os
import socket
import time

from handrail import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELLO = 1
"""The version of this greeting. Both ends say theirs; a pair that differs is told to restart the daemon."""

HELLO_MAX = 64 << 10
"""Bytes of a reply; bounds what a wrong peer can make us hold."""

HELLO_SECONDS = 10.0
"""A daemon that listens and does not answer for so long hangs; bounds the wait of whoever launched us."""


class HelloRefused(Exception):
    """The daemon listens but does not take us in."""

    def __init__(self, why: str, hung_up: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.hung_up = hung_up
        """It was there and left without an answer, as one does that is just ending."""

    def __str__(self) -> str:
        return f"The Handrail daemon did not let this program in: {self.why}"


def say_hello(
    sock: socket.socket,
    want: str,
    *,
    workspace: str | None = None,
    door: str | None = None,
    credential: str = "",
    within: float = HELLO_SECONDS,
) -> dict[str, Any]:
    """Greet as `mcp`, `person` or `read` and give back the daemon's reply.

    Reads not one byte beyond that reply. Leaves the socket blocking. Raises HelloRefused.
    """
    deadline = time.monotonic() + within
    try:
        sock.settimeout(within)
        sock.sendall(_hello(want, workspace, door, credential))
        reply = _reply(_read_line(sock, deadline))
        sock.settimeout(None)
    except TimeoutError:
        raise HelloRefused(
            f"it has not answered for {within:g} s. `handrail doctor` says more; `handrail restart` replaces it."
        ) from None
    except OSError as error:
        raise HelloRefused(f"it hung up ({error.strerror or error}). Try again.", hung_up=True) from None
    return reply


def _hello(want: str, workspace: str | None, door: str | None, credential: str) -> bytes:
    who = {"handrail": HELLO, "want": want, "version": __version__, "pid": os.getpid(), "ppid": os.getppid()}
    where = {"cwd": _cwd(), "workspace": workspace, "door": door or os.urandom(8).hex()}
    lent = {"credential": credential} if credential else {}
    return json.dumps({**who, **where, **lent}).encode() + b"\n"


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # the directory was removed under us; `/` counts as no workspace
        return "/"


def _read_line(sock: socket.socket, deadline: float) -> bytes:
    """One line and nothing after it, which belongs to the protocol that follows."""
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
        waiting = sock.recv(4096, socket.MSG_PEEK)
        if not waiting:
            raise HelloRefused("it closed the connection without a word. Try again.", hung_up=True)
        line += sock.recv(waiting.find(b"\n") + 1 or len(waiting))
        if len(line) > HELLO_MAX:
            raise HelloRefused("its reply is too long to be a Handrail daemon's.")
    return line


def _reply(line: bytes) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = json.loads(line)
        theirs = reply["handrail"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise HelloRefused("what listens on its socket is not Handrail's. Try `handrail restart`.") from None
    if reply.get("ok") is not True:
        raise HelloRefused(str(reply.get("why") or "it gave no reason."))
    if theirs != HELLO:
        raise HelloRefused(
            f"it greets by version {theirs} and this program by {HELLO}. Run `handrail restart`."
        )
    return reply
