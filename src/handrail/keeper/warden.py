"""The warden: one small process above each terminal's tree, so that its lineage is never lost.

Runs in a fork of the keeper and never returns. It starts the leader, tells the keeper when the leader left, ends
the tree when told to, when the leader has left, or when the keeper is gone, and reports. It is a child subreaper:
whatever the tree does, a process of it is a descendant of the warden until it is dead. Does not know PTYs' bytes,
spools or the daemon.

What keeper and warden say to each other: one is a fork of the other, so there is no version to it.

The last steps of a leader before its program runs: session, terminal, limits, directory, exec.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import termios
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from handrail.framing import LineBuffer
from handrail.keeper import lineage, system
from handrail.keeper.message_framing import FRAME_MAX, decode, encode, name_of
from handrail.keeper.protocol import Exit, Report
from handrail.keeper.stop_tree import Ending

if TYPE_CHECKING:
    from handrail.keeper.protocol import Start


@dataclass(frozen=True, slots=True)
class Launched:
    pid: int


@dataclass(frozen=True, slots=True)
class NotLaunched:
    why: str


@dataclass(frozen=True, slots=True)
class LeaderLeft:
    exit: Exit


@dataclass(frozen=True, slots=True)
class TreeEnded:
    report: Report


@dataclass(frozen=True, slots=True)
class SignalLeader:
    number: int


@dataclass(frozen=True, slots=True)
class EndTree:
    grace: float


FromWarden = Launched | NotLaunched | LeaderLeft | TreeEnded
ToWarden = SignalLeader | EndTree

_FROM_WARDEN = {name_of(kind): kind for kind in (Launched, NotLaunched, LeaderLeft, TreeEnded)}
_TO_WARDEN = {name_of(kind): kind for kind in (SignalLeader, EndTree)}


def from_warden(line: bytes) -> FromWarden:
    return decode(line, _FROM_WARDEN)


def to_warden(line: bytes) -> ToWarden:
    return decode(line, _TO_WARDEN)


KEEPER_GONE_GRACE = 0.5
"""Seconds a tree gets when its keeper has died: nobody is left to ask for more."""
_UNMOVED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)


def run(
    order: Start, stdio: tuple[int, int, int], link: socket.socket, descriptors: tuple[int, int]
) -> NoReturn:
    try:
        _settle_in(keep={link.fileno(), *stdio})
        Warden(order, link).watch(stdio, descriptors)
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _settle_in(keep: set[int]) -> None:
    gc.disable()
    start = 3
    for fd in sorted(keep - {0, 1, 2}):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    system.set_name("handrail-warden")
    system.adopt_orphans()
    for number in _UNMOVED:
        signal.signal(number, signal.SIG_IGN)
    lineage.mark()


class Warden:
    """The leader's parent, and the end of its tree."""

    def __init__(self, order: Start, link: socket.socket) -> None:
        self._order = order
        self._link = link
        self._lines = LineBuffer(FRAME_MAX)
        self._pid = 0
        self._ending: Ending | None = None
        self._launched = False
        self._leader_left = False

    def watch(self, stdio: tuple[int, int, int], descriptors: tuple[int, int]) -> None:
        wake = system.wake_on(signal.SIGCHLD)
        complaint = self._launch(stdio, descriptors)
        poll = select.poll()
        for fd in (self._link.fileno(), wake, complaint):
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(self._patience())}
            if wake in ready:
                os.read(wake, 4096)
            if complaint in ready:
                poll.unregister(complaint)
                self._hear_complaint(complaint)
            if self._link.fileno() in ready and not self._hear_keeper():
                poll.unregister(self._link)
            if (self._launched or self._ending) and self._is_over():
                return

    def _launch(self, stdio: tuple[int, int, int], descriptors: tuple[int, int]) -> int:
        complaint, complain = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            become(self._order, stdio, descriptors, complain)
        for fd in {complain, *stdio}:
            os.close(fd)
        return complaint

    def _hear_complaint(self, complaint: int) -> None:
        """Nothing but the end of the pipe means that the program runs."""
        why = os.read(complaint, 4096).decode(errors="replace")
        os.close(complaint)
        self._launched = True
        if why:
            self._tell(NotLaunched(why))
            os.waitpid(self._pid, 0)
            self._leader_left = True
        else:
            self._tell(Launched(self._pid))

    def _hear_keeper(self) -> bool:
        """Act on what the keeper says; False when it is gone, which ends the tree."""
        try:
            data = self._link.recv(65536)
        except OSError:
            data = b""
        for line in self._lines.feed(data):
            match to_warden(line):
                case SignalLeader(number):
                    self._signal_leader(number)
                case EndTree(grace):
                    self._end("stop", grace)
        if not data:
            self._end("keeper gone", KEEPER_GONE_GRACE)
        return bool(data)

    def _signal_leader(self, number: int) -> None:
        # The leader's pid is ours until we reap it, and a pidfd says so to the kernel as well.
        if not self._leader_left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _signal_by_pidfd(self._pid, number)

    def _end(self, why: str, grace: float) -> None:
        if self._ending is None:
            self._ending = Ending(why, grace)
        else:
            self._ending.hurry(grace)

    def _patience(self) -> float | None:
        """Milliseconds to wait for news."""
        return None if self._ending is None else self._ending.wait_at_most() * 1000

    def _is_over(self) -> bool:
        """Reap, report the leader, end what it left; True once nothing of the tree is left."""
        gone = not self._reap()
        if self._ending is None:
            if gone:
                self._tell(TreeEnded(Report("exit")))
            elif self._leader_left:
                self._end("exit", self._order.grace)
            return gone
        stuck = not gone and self._ending.go_on()
        if gone or stuck:
            self._tell(TreeEnded(self._ending.report(left=stuck)))
        return gone or stuck

    def _reap(self) -> bool:
        """Collect the dead; True while anything lives."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._pid:
                self._leader_left = True
                self._tell(LeaderLeft(exit_of(status)))

    def _tell(self, message: FromWarden) -> None:
        with contextlib.suppress(OSError):
            self._link.sendall(encode(message))


def exit_of(status: int) -> Exit:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return Exit(code=code)
    try:
        return Exit(signal=signal.Signals(-code).name)
    except ValueError:
        return Exit(signal=f"SIG{-code}")


def _signal_by_pidfd(pid: int, number: int) -> None:
    if not system.LINUX:
        return os.kill(pid, number)
    pidfd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


_ALTERED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD),
    *(signal.SIGPIPE, signal.SIGXFSZ),
)
"""Signals that Python, the keeper or the warden ignore or handle: an ignored one would stay ignored across exec."""

_HOLD = getattr(os, "O_PATH", os.O_RDONLY)
"""To stand in a directory one need not be able to list it."""


def become(
    order: Start, stdio: tuple[int, int, int], descriptors: tuple[int, int], complain: int
) -> NoReturn:
    try:
        _prepare(order, stdio, descriptors)
        _enter(order.cwd, order.cwd_id)
        _execute(order)
    except _Impossible as impossible:
        os.write(complain, str(impossible).encode(errors="replace"))
    except BaseException as error:
        os.write(complain, f"The program could not be started: {error}".encode(errors="replace"))
    os._exit(127)


class _Impossible(Exception):
    """A sentence that says why the program cannot run."""


def _prepare(order: Start, stdio: tuple[int, int, int], descriptors: tuple[int, int]) -> None:
    os.setsid()
    if not order.pipes:
        fcntl.ioctl(stdio[0], termios.TIOCSCTTY, 0)
    for target, source in enumerate(stdio):
        os.dup2(source, target)
    resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)
    for number in _ALTERED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _enter(cwd: str, expected: tuple[int, int] | None) -> None:
    """Go into a directory by a descriptor, so that what was looked at is what is entered."""
    try:
        descriptor = os.open(cwd, _HOLD | os.O_DIRECTORY | os.O_CLOEXEC)
        found = os.fstat(descriptor)
        if expected is not None and (found.st_dev, found.st_ino) != expected:
            raise _Impossible(
                f"{cwd} is no longer the directory that was checked: another was put in its place. Nothing was run."
            )
        os.fchdir(descriptor)
    except FileNotFoundError:
        raise _Impossible(f"The directory {cwd} does not exist.") from None
    except NotADirectoryError:
        raise _Impossible(f"{cwd} is not a directory.") from None
    except PermissionError:
        raise _Impossible(f"The directory {cwd} may not be entered: permission denied.") from None


def _execute(order: Start) -> None:
    program = order.argv[0]
    env = {**order.env, "PWD": order.cwd}
    try:
        os.execvpe(program, list(order.argv), env)
    except FileNotFoundError:
        where = "" if "/" in program else " on the PATH it was given"
        raise _Impossible(f"There is no program {program}{where}, or its interpreter is missing.") from None
    except PermissionError:
        raise _Impossible(f"The program {program} may not be executed: permission denied.") from None
    except OSError as error:
        raise _Impossible(_sentence(program, error)) from None


def _sentence(program: str, error: OSError) -> str:
    match error.errno:
        case errno.ENOEXEC:
            return f"{program} is not a program this system can run: it lacks a first line such as #!/bin/sh."
        case errno.E2BIG:
            return f"The arguments and environment of {program} are longer than the system allows."
        case _:
            return f"The program {program} could not be started: {error.strerror}."
