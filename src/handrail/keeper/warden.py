"""The warden: a small process above each terminal's process tree, which keeps the tree's lineage.

Runs in a fork of the keeper and never returns. It starts the leader and reports its exit. It stops the tree when the
keeper requests it, when the leader exits, or when the keeper dies, and reports the result. It is a child subreaper: every
process of the tree remains its descendant, even after a double fork. It does not handle output.

A spare warden is forked before there is an order. Its leader waits for the order, which also brings the PTY.

Also defines the messages between keeper and warden (without a version, since one is a fork of the other) and the steps of
a leader before exec: session, limits, controlling terminal, directory.
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
import time
import traceback
from typing import TYPE_CHECKING, NoReturn

from handrail.framing import LineBuffer
from handrail.keeper import lineage, system
from handrail.keeper.message_framing import FRAME_MAX, decode, encode, name_of
from handrail.keeper.protocol import CheckedProgram, Exit, Report, Start
from handrail.keeper.stop_tree import TreeStop
from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


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


@dataclass(frozen=True, slots=True)
class Begin:
    """A spare warden's leader gets its order now."""

    grace: float


FromWarden = Launched | NotLaunched | LeaderLeft | TreeEnded
ToWarden = SignalLeader | EndTree | Begin

_FROM_WARDEN = {name_of(kind): kind for kind in (Launched, NotLaunched, LeaderLeft, TreeEnded)}
_TO_WARDEN = {name_of(kind): kind for kind in (SignalLeader, EndTree, Begin)}


def from_warden(line: bytes) -> FromWarden:
    return decode(line, _FROM_WARDEN)


def to_warden(line: bytes) -> ToWarden:
    return decode(line, _TO_WARDEN)


KEEPER_GONE_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL when the keeper has died."""
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)


def run(
    link: socket.socket, descriptors: set[int], grace: float, lead: Callable[[int], NoReturn]
) -> NoReturn:
    """Watch over a leader, which runs `lead` and keeps these descriptors; `lead` gets a pipe for its error."""
    try:
        _isolate(keep={link.fileno(), *descriptors})
        Warden(link, grace).watch(descriptors, lead)
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _isolate(keep: set[int]) -> None:
    """Close other descriptors, start a session, become a subreaper, ignore signals and set the lineage mark."""
    gc.disable()
    start = 3
    for fd in sorted(keep - {0, 1, 2}):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    system.set_name("handrail-warden")
    system.adopt_orphans()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    lineage.mark()


class Warden:
    """Parent of the leader: starts it, forwards signals, and stops the tree."""

    def __init__(self, link: socket.socket, grace: float) -> None:
        self._link = link
        self._grace = grace
        self._unsent = b""
        self._lines = LineBuffer(FRAME_MAX)
        self._pid = 0
        self._ending: TreeStop | None = None
        self._launched = False
        self._leader_left = False

    def watch(self, descriptors: set[int], lead: Callable[[int], NoReturn]) -> None:
        wake = system.wake_on(signal.SIGCHLD)
        errors = self._launch(descriptors, lead)
        _rehearse_reports()
        poll = select.poll()
        for fd in (self._link.fileno(), wake, errors):
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(self._timeout_ms())}
            if wake in ready:
                os.read(wake, 4096)
            if errors in ready:
                poll.unregister(errors)
                self._read_launch_error(errors)
            if self._link.fileno() in ready and not self._read_link():
                poll.unregister(self._link)
            is_over = (self._launched or self._ending) and self._is_over()
            self._flush()
            if is_over:
                return

    def _launch(self, descriptors: set[int], lead: Callable[[int], NoReturn]) -> int:
        """Fork the leader; return a pipe on which it reports why it could not exec."""
        errors, report_to = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._link.close()  # the keeper must see the end of a warden whose leader still waits for its order
            lead(report_to)
        for fd in {report_to, *descriptors}:
            os.close(fd)
        return errors

    def _read_launch_error(self, errors: int) -> None:
        """Report whether the program runs: end of file without data means that exec closed the pipe."""
        why = os.read(errors, 4096).decode(errors="replace")
        os.close(errors)
        self._launched = True
        if why:
            self._send(NotLaunched(why))
            os.waitpid(self._pid, 0)
            self._leader_left = True
        else:
            self._send(Launched(self._pid))

    def _read_link(self) -> bool:
        """Handle the keeper's messages; False if the keeper is gone, which stops the tree."""
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
                case Begin(grace):
                    self._grace = grace
                    self._signal_leader(signal.SIGCONT)  # another process may have stopped it
        if not data:
            self._end("keeper gone", KEEPER_GONE_GRACE)
        return bool(data)

    def _signal_leader(self, number: int) -> None:
        # The pid cannot be reused before we reap the leader.
        if not self._leader_left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _signal_by_pidfd(self._pid, number)

    def _end(self, why: str, grace: float) -> None:
        if self._ending is None:
            self._ending = TreeStop(why, grace)
        else:
            self._ending.hurry(grace)

    def _timeout_ms(self) -> float | None:
        """Milliseconds that poll may wait; None without a limit."""
        return None if self._ending is None else self._ending.wait_at_most() * 1000

    def _is_over(self) -> bool:
        """Reap children, report the leader's exit, stop its survivors. True once the tree is gone or cannot be killed."""
        gone = not self._reap()
        if self._ending is None:
            if gone:
                self._send(TreeEnded(Report("exit")))
            elif self._leader_left:
                self._end("exit", self._grace)
            return gone
        stuck = not gone and self._ending.advance()
        if gone or stuck:
            self._send(TreeEnded(self._ending.report(left=stuck)))
        return gone or stuck

    def _reap(self) -> bool:
        """Reap exited children; True while any child is alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._pid:
                self._leader_left = True
                self._send(LeaderLeft(exit_of(status)))

    def _send(self, message: FromWarden) -> None:
        """Queue a message. What one pass of the loop queues is sent together, which wakes the keeper once."""
        self._unsent += encode(message)

    def _flush(self) -> None:
        if self._unsent:
            with contextlib.suppress(OSError):
                self._link.sendall(self._unsent)
            self._unsent = b""


def rehearse() -> None:
    """Encode and decode in the keeper, before the first fork, what wardens and leaders send and receive.

    The first time, the types of a message are looked up, which compiles their names. Each warden would do it again.
    """
    _rehearse_reports()
    decode(encode(_SAMPLE), {name_of(Start): Start})


def _rehearse_reports() -> None:
    """Encode and decode once while nothing waits. The first time copies the pages that are shared with the keeper."""
    to_warden(encode(Begin(0.0)))
    for message in (Launched(0), LeaderLeft(exit_of(0)), TreeEnded(Report("exit"))):
        encode(message)


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
"""Signals that Python, the keeper or the warden ignore or handle. An ignored signal would stay ignored across exec."""

_OPEN_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
"""O_PATH needs no read permission."""


def become(
    order: Start, stdio: tuple[int, int, int], descriptors: tuple[int, int], report_to: int
) -> NoReturn:
    """Replace this process with the program; on failure, write the reason to `report_to` and exit."""
    _become(lambda: (order, stdio), descriptors, report_to)


def wait_for_order(orders: socket.socket, descriptors: tuple[int, int], report_to: int) -> NoReturn:
    """Wait for an order and its PTY, then become the program. Exits if the keeper closes the socket."""
    _rehearse_order()
    _become(lambda: _receive_order(orders), descriptors, report_to)


def _become(
    receive: Callable[[], tuple[Start, tuple[int, int, int]]], descriptors: tuple[int, int], report_to: int
) -> NoReturn:
    try:
        _detach(descriptors)
        order, stdio = receive()
        _take_terminal(order, stdio)
        _enter(order.cwd, order.cwd_id)
        _execute(order)
    except _Impossible as impossible:
        os.write(report_to, str(impossible).encode(errors="replace"))
    except BaseException as error:
        os.write(report_to, f"The program could not be started: {error}".encode(errors="replace"))
    os._exit(127)


def _rehearse_order() -> None:
    """Take the steps of an order once while nothing waits, for the same reason."""
    decode(encode(_SAMPLE), {name_of(Start): Start})
    _identity(_SAMPLE.cwd)
    _enter(_SAMPLE.cwd, None)


_SAMPLE = Start(0, "t", ("true",), "/", {"PATH": "/bin"}, programs=(CheckedProgram("/bin/true", (0,)),))


def _receive_order(orders: socket.socket) -> tuple[Start, tuple[int, int, int]]:
    parent, line, received = os.getppid(), b"", list[int]()
    while not line.endswith(b"\n"):
        data, fds, _, _ = socket.recv_fds(orders, FRAME_MAX, 1)
        if not data:
            os._exit(0)
        line += data
        received += fds
    if os.getppid() != parent:  # the warden was killed: nothing may run without one
        os._exit(0)
    (slave,) = received
    os.set_inheritable(slave, False)
    return decode(line, {name_of(Start): Start}), (slave, slave, slave)


class _Impossible(Exception):
    """The reason why the program cannot run, written for people."""


def _detach(descriptors: tuple[int, int]) -> None:
    """Start a session; reset the limit on open files and the signals."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)
    for number in _ALTERED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_terminal(order: Start, stdio: tuple[int, int, int]) -> None:
    if not order.pipes:
        fcntl.ioctl(stdio[0], termios.TIOCSCTTY, 0)
    for target, source in enumerate(stdio):
        os.dup2(source, target)


def _enter(cwd: str, expected: tuple[int, int] | None) -> None:
    """Change the directory through a descriptor, so that the checked directory is the one entered (TOCTOU)."""
    try:
        descriptor = os.open(cwd, _OPEN_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if expected is not None and (status.st_dev, status.st_ino) != expected:
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
    _check_programs(order.programs)
    if order.exact and order.programs and system.can_execute_descriptors():
        _execute_exact(order, env)
    try:
        os.execvpe(program, list(order.argv), env)
    except FileNotFoundError:
        where = "" if "/" in program else " on the PATH it was given"
        raise _Impossible(f"There is no program {program}{where}, or its interpreter is missing.") from None
    except PermissionError:
        raise _Impossible(f"The program {program} may not be executed: permission denied.") from None
    except OSError as error:
        raise _Impossible(_describe_error(program, error)) from None


_LOOKS = 20
_LOOK_SECONDS = 0.00005
"""A path that is switched back and forth is caught by looking more than once."""
_SYSTEM_FOLDERS = ("/usr/", "/bin/", "/sbin/")


def _check_programs(programs: tuple[CheckedProgram, ...]) -> None:
    """Look at each program again just before the start. Raises _Impossible if it is no longer the checked file."""
    looks = _LOOKS if any(_is_replaceable(program.path) for program in programs) else 1
    for look in range(looks):
        for program in programs:
            if _identity(program.path) != program.identity:
                raise _Impossible(_describe_replaced(program))
        if look < looks - 1:
            time.sleep(_LOOK_SECONDS)


def _is_replaceable(path: str) -> bool:
    """Whether this user can put another file under this name, outside the system's own folders."""
    return not path.startswith(_SYSTEM_FOLDERS) and os.access(os.path.dirname(path) or ".", os.W_OK)


def _identity(file: str | int) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns


def _describe_replaced(program: CheckedProgram) -> str:
    return f"{program.path} is no longer the program that was checked: another was put in its place. Nothing was run."


def _execute_exact(order: Start, env: dict[str, str]) -> None:
    """Execute the first checked program by its descriptor, as bash would: `_`, `SHLVL`, message and exit code."""
    program = order.programs[0]
    descriptor = os.open(program.path, _OPEN_ONLY | os.O_CLOEXEC)
    if _identity(descriptor) != program.identity:
        raise _Impossible(_describe_replaced(program))
    try:
        os.execve(descriptor, order.exact, {"SHLVL": "0", **env, "_": program.path})
    except OSError as error:
        why = "cannot execute binary file: " if error.errno == errno.ENOEXEC else ""
        message = f"{order.argv[0]}: line 1: {order.exact[0]}: {why}{error.strerror}\n"
        os.write(2, message.encode(errors="replace"))
        os._exit(127 if error.errno == errno.ENOENT else 126)


def _describe_error(program: str, error: OSError) -> str:
    match error.errno:
        case errno.ENOEXEC:
            return f"{program} is not a program this system can run: it lacks a first line such as #!/bin/sh."
        case errno.E2BIG:
            return f"The arguments and environment of {program} are longer than the system allows."
        case _:
            return f"The program {program} could not be started: {error.strerror}."
