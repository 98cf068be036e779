"""The warden: a small process above each terminal's process tree, which keeps the tree's lineage.

Runs in a fork of the keeper and never returns. It starts the leader of an order and reports its exit. It stops the tree
when the keeper requests it, when the leader exits, or when the keeper dies, and reports the result. It is a child
subreaper: every process of the tree remains its descendant, even after a double fork. It does not handle output.

It has one tree at a time. Once no process of it is left, it is idle and can take another order; without a keeper it exits.

Also defines the messages between keeper and warden (without a version, since one is a fork of the other). An order is a
`Start`, sent with the descriptors of the PTY or pipes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import traceback
from typing import NoReturn

from handrail.framing import LineBuffer
from handrail.keeper import _leader, lineage, system
from handrail.keeper.message_framing import FRAME_MAX, decode, encode, name_of
from handrail.keeper.protocol import CheckedProgram, Exit, Report, Start
from handrail.keeper.stop_tree import TreeStop
from handrail.lazy_dataclass import dataclass


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
    altered: bool = False
    """A process of the tree has changed the warden, so it must not get another order."""


@dataclass(frozen=True, slots=True)
class SignalLeader:
    number: int


@dataclass(frozen=True, slots=True)
class EndTree:
    grace: float


FromWarden = Launched | NotLaunched | LeaderLeft | TreeEnded
ToWarden = SignalLeader | EndTree | Start

_FROM_WARDEN = {name_of(kind): kind for kind in (Launched, NotLaunched, LeaderLeft, TreeEnded)}
_TO_WARDEN = {name_of(kind): kind for kind in (SignalLeader, EndTree, Start)}


def from_warden(line: bytes) -> FromWarden:
    return decode(line, _FROM_WARDEN)


def to_warden(line: bytes) -> ToWarden:
    return decode(line, _TO_WARDEN)


KEEPER_GONE_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL when the keeper has died."""
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)


def run(
    link: socket.socket, limits: tuple[int, int], order: Start | None = None, stdio: tuple[int, ...] = ()
) -> NoReturn:
    """Serve the keeper at the other end of the link, beginning with this order. Leaders get this limit on open files."""
    try:
        _isolate(keep={link.fileno(), *stdio})
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        Warden(link).serve(order, stdio)
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _isolate(keep: set[int]) -> None:
    """Take a name, close other descriptors, start a session, become a subreaper, ignore signals, set the lineage mark."""
    gc.disable()
    system.set_name("handrail-warden")
    start = 3
    for fd in sorted(keep - {0, 1, 2}):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    system.adopt_orphans()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    lineage.mark()


class Warden:
    """Takes orders from the keeper, and has the tree of one of them at a time."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._unsent = b""
        self._lines = LineBuffer(FRAME_MAX)
        self._descriptors: list[int] = []
        self._tree: Tree | None = None
        self._keeper_gone = False
        self._keyring = system.session_keyring()

    def serve(self, order: Start | None, stdio: tuple[int, ...]) -> None:
        """Run until the keeper is gone, or until a tree cannot be ended."""
        wake = system.wake_on(signal.SIGCHLD)
        if order is None:
            rehearse()
        else:
            self._start(order, stdio)
        poll = select.poll()
        for fd in (self._link.fileno(), wake):
            poll.register(fd, select.POLLIN)
        while self._tree is not None or not self._keeper_gone:
            self._flush()
            ready = {fd for fd, _ in poll.poll(None if self._tree is None else self._tree.timeout_ms())}
            if wake in ready:
                os.read(wake, 4096)
            if self._link.fileno() in ready:
                self._read_link()
                if self._keeper_gone:
                    poll.unregister(self._link)
            if self._tree is not None and not self._advance(self._tree):
                break
        self._flush()

    def _read_link(self) -> None:
        """Handle the keeper's messages. If the keeper is gone, stop the tree."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._link, 65536, 3)
        except OSError:
            data, descriptors = b"", []
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors += descriptors
        for line in self._lines.feed(data):
            self._handle(to_warden(line))
        if not data:
            self._keeper_gone = True
            if self._tree is not None:
                self._tree.end("keeper gone", KEEPER_GONE_GRACE)

    def _handle(self, message: ToWarden) -> None:
        # A signal or a stop may arrive after the end of the tree that it is for.
        match message:
            case Start():
                stdio, self._descriptors = tuple(self._descriptors), []
                self._start(message, stdio)
            case SignalLeader(number):
                if self._tree is not None:
                    self._tree.signal_leader(number)
            case EndTree(grace):
                if self._tree is not None:
                    self._tree.end("stop", grace)

    def _start(self, order: Start, stdio: tuple[int, ...]) -> None:
        try:
            self._tree = Tree(_leader.start(order, stdio), order.grace)
        except _leader.NotStartedError as error:
            self._send(NotLaunched(str(error)))
            self._send(TreeEnded(Report("exit")))
        else:
            self._send(Launched(self._tree.leader))
        for fd in stdio:
            os.close(fd)

    def _advance(self, tree: Tree) -> bool:
        """Reap children and stop what is due. False if the tree cannot be ended."""
        left, is_gone = tree.reap()
        if left is not None:
            self._send(LeaderLeft(left))
        report = tree.advance(is_gone)
        if report is not None:
            self._send(TreeEnded(report, altered=system.session_keyring() != self._keyring))
            self._tree = None
        return report is None or is_gone

    def _send(self, message: FromWarden) -> None:
        """Queue a message. What one pass of the loop queues is sent together, which wakes the keeper once."""
        self._unsent += encode(message)

    def _flush(self) -> None:
        if self._unsent:
            with contextlib.suppress(OSError):
                self._link.sendall(self._unsent)
            self._unsent = b""


class Tree:
    """All processes below the warden: a leader, and its descendants."""

    def __init__(self, leader: int, grace: float) -> None:
        self.leader = leader
        self._grace = grace
        self._leader_left = False
        self._ending: TreeStop | None = None

    def signal_leader(self, number: int) -> None:
        # The pid cannot be reused before we reap the leader.
        if not self._leader_left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _signal_by_pidfd(self.leader, number)

    def end(self, why: str, grace: float) -> None:
        if self._ending is None:
            self._ending = TreeStop(why, grace)
        else:
            self._ending.hurry(grace)

    def timeout_ms(self) -> float | None:
        """Milliseconds after which `advance` must be called; None if only after a change."""
        return None if self._ending is None else self._ending.wait_at_most() * 1000

    def reap(self) -> tuple[Exit | None, bool]:
        """Reap exited children. Returns how the leader ended, if it was one of them, and whether no child is left."""
        left: Exit | None = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return left, True
            if pid == 0:
                return left, False
            if pid == self.leader:
                self._leader_left = True
                left = exit_of(status)

    def advance(self, is_gone: bool) -> Report | None:
        """Stop what the leader has left; the report once the tree is gone or cannot be killed."""
        if self._ending is None:
            if is_gone:
                return Report("exit")
            if self._leader_left:
                self.end("exit", self._grace)
            return None
        is_stuck = not is_gone and self._ending.advance()
        return self._ending.report(left=is_stuck) if is_gone or is_stuck else None


def rehearse() -> None:
    """Encode and decode what keeper and wardens send, while nothing waits.

    In the keeper before the first fork: the types of a message are looked up once. In a warden without an order: the first
    time copies the pages that it shares with the keeper.
    """
    to_warden(encode(_SAMPLE))
    for message in (Launched(0), LeaderLeft(exit_of(0)), TreeEnded(Report("exit"))):
        encode(message)


_SAMPLE = Start(0, "t", ("true",), "/", {"PATH": "/bin"}, programs=(CheckedProgram("/bin/true", (0,)),))


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
