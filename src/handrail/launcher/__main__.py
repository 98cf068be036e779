"""The launcher process: starts programs and helpers for the daemon, and reports how they ended.

Usage: `python -I -S …/handrail/launcher/__main__.py`, with a socket to the daemon as descriptor 0. The daemon starts it
already marked, so all that it starts inherits the mark. It hides its memory and has an empty environment. Helpers written
in Python are forks of it, so they are marked and hidden from their first instruction. It ends with the daemon, and its child
processes end with it. Standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.append(str(Path(__file__).resolve().parents[2]))

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket

from handrail.hardening import hide_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HEADER = 8
"""Bytes before an order: the length of its JSON text and the number of descriptors, four bytes each."""
BATCH = 200
"""Descriptors in one message; the kernel accepts 253."""
WORKING_DIRECTORY = -1
"""The target of a descriptor that the child changes its directory to."""
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    hide_memory()
    orders = socket.socket(fileno=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3))
    os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 0)
    _raise_descriptors()
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(b"handrail-launch"), 0, 0, 0)
    server = Server(orders, _wake_on_child_exit())
    gc.collect()
    gc.freeze()  # forks share these pages (copy on write); a collection would touch and copy them
    server.run()


class Server:
    """Starts children by order of the daemon. Each child has a control socket to the daemon.

    On that socket the launcher sends how the child ended. If the daemon sends anything there or closes it, the child is
    killed.
    """

    def __init__(self, orders: socket.socket, wake: int) -> None:
        self._orders = orders
        self._wake = wake
        self._controls: dict[int, socket.socket] = {}
        self._pids: dict[int, int] = {}
        self._poll = select.poll()
        self._poll.register(orders, select.POLLIN)
        self._poll.register(wake, select.POLLIN)

    def run(self) -> None:
        """Serve until the daemon closes its socket, then kill what runs."""
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._wake:
                    os.read(self._wake, 4096)
                    self._reap()
                elif fd in self._pids:
                    self._kill(fd)
                elif fd == self._orders.fileno() and not self._take_order():
                    for pid in self._controls:
                        _kill_group(pid)
                    return

    def _take_order(self) -> bool:
        """Read an order and start its child; False if the daemon is gone."""
        try:
            order, (control, *descriptors) = _receive(self._orders)
        except (EOFError, OSError):
            return False
        with socket.socket(fileno=control) as control_socket:
            self._start(order, control_socket.dup(), descriptors)
        for fd in descriptors:
            os.close(fd)
        return True

    def _start(self, order: dict[str, Any], control: socket.socket, descriptors: list[int]) -> None:
        try:
            if "call" in order:
                importlib.import_module(order["call"])  # here, so that later helpers have it already
            pid = os.fork()
        except (OSError, ImportError) as error:
            with contextlib.suppress(OSError):
                control.sendall(_encode({"error": str(error), "code": 127}))
            control.close()
            return
        if pid == 0:
            _become(order, control, descriptors)
        self._controls[pid] = control
        self._pids[control.fileno()] = pid
        self._poll.register(control, select.POLLIN)

    def _kill(self, control: int) -> None:
        self._poll.unregister(control)
        _kill_group(self._pids.pop(control))

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (child := os.waitpid(-1, os.WNOHANG))[0] != 0:
                control = self._controls.pop(child[0])
                if self._pids.pop(control.fileno(), None) is not None:
                    self._poll.unregister(control)
                with contextlib.suppress(OSError), control:
                    control.sendall(_encode({"code": os.waitstatus_to_exitcode(child[1])}))


def _become(order: dict[str, Any], control: socket.socket, descriptors: list[int]) -> NoReturn:
    """In the child: put the descriptors in place, then run the program or the function."""
    status = 127
    try:
        _detach()
        report_to = _place(order["targets"], descriptors, control.fileno())
        if "call" in order:
            status = _run_function(order)
        else:
            _execute(order, report_to)
    except BaseException as error:  # a fork must never return into its parent's code
        sys.stderr.write(f"{order.get('call', order.get('argv'))}: {error}\n")
    finally:
        os._exit(status)


def _detach() -> None:
    os.setsid()
    if sys.platform == "linux":
        parent = os.getppid()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if parent == 1 or os.getppid() != parent:
            os._exit(127)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_NOFILE, _LIMITS)


def _place(targets: list[int], descriptors: list[int], control: int) -> int:
    """Give each descriptor its number; returns the new number of the control socket."""
    floor = max(targets) + 1
    control, *moved = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, floor) for fd in (control, *descriptors))
    for target, fd in zip(targets, moved, strict=True):
        if target == WORKING_DIRECTORY:
            os.fchdir(fd)
        else:
            os.dup2(fd, target)
    return control


def _run_function(order: dict[str, Any]) -> int:
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers, not paths; exec closes them for a program
        if int(name) not in order["targets"]:
            with contextlib.suppress(OSError):
                os.close(int(name))
    function = importlib.import_module(order["call"]).main
    with open(1, "w", closefd=False, encoding="utf-8") as output:
        function(order["argument"], output)
    return 0


def _execute(order: dict[str, Any], report_to: int) -> None:
    try:
        if WORKING_DIRECTORY not in order["targets"]:
            os.chdir(order["cwd"])
        os.execve(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        os.write(report_to, _encode({"error": f"{order['argv'][0]}: {error.strerror}"}))


def _receive(orders: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Read one order and its descriptors. Raises EOFError if the daemon has closed the socket."""
    header = _read(orders, HEADER)
    length, count = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    descriptors: list[int] = []
    while len(descriptors) < count:
        filler, received, _, _ = socket.recv_fds(orders, 1, BATCH)
        if not filler or not received:
            raise EOFError
        for fd in received:
            os.set_inheritable(fd, False)
        descriptors += received
    return json.loads(_read(orders, length)), descriptors


def _read(orders: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        chunk = orders.recv(length - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def _encode(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # a child that was just forked has no group of its own yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


_LIMITS = resource.getrlimit(resource.RLIMIT_NOFILE)


def _raise_descriptors() -> None:
    """Raise our limit on open files to its maximum; children get the old limits."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_LIMITS[1], _LIMITS[1]))


def _wake_on_child_exit() -> int:
    """A descriptor that is readable after a child has exited."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    return wake


if __name__ == "__main__":
    main()
