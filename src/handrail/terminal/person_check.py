"""Decide whether a socket peer is a person, by its position in the process tree.

The programs that launched a door count as agents, and so do their descendants and everything that Handrail started.
keeper/lineage.py reads the process tree.
"""

import json
import os
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio

from handrail.keeper import lineage

NO_PERSON = (
    "This runs inside an agent's process tree, or inside something that Handrail started, and neither can decide "
    "for a person. Do it on the page, or in a terminal of your own."
)
OTHER_USER = "This socket belongs to another user."
MOST_LAUNCHERS = 500
"""Agent processes remembered. Bounds the keeper's memo and the search, if a client opens doors in a loop."""
WALK_TRIES = 5
SHELLS = frozenset(
    ["bash", "dash", "elvish", "fish", "ksh", "mksh", "nu", "pwsh", "sh", "tcsh", "csh", "xonsh", "zsh"]
)
ADOPTERS = frozenset(("systemd", "init"))
"""Names of session managers. They adopt orphans, and a person's terminals run below them."""

Identity = tuple[int, int]


class DoorLaunchers:
    """The live processes that launched a door: agents, with the wrappers between them and the door."""

    def __init__(self, kept: bytes = b"", keeper_pid: Callable[[], int] = lambda: 0) -> None:
        """`kept` is what `keep` was called with before a restart."""
        self._launchers, self._servers = _load(kept)
        self._keeper_pid = keeper_pid
        self._reference = lineage.reference()
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Called with the serialised launchers after each change. The keeper holds them for the next daemon."""
        self.on_change: list[Callable[[], None]] = []
        """Called after each change, which may make an agent of a process that decides now."""

    def launched_server(self, connection: socket.socket) -> "WaitingProcess | None":
        """Record and return the process that started this door as its MCP server, whether it is marked or not."""
        client = find_waiting_process(connection)
        if client is not None and client.identity not in self._servers:
            living = [each for each in self._servers if lineage.identity(each[0]) == each]
            self._servers = dict.fromkeys([*living, client.identity][-MOST_LAUNCHERS:])
            self._keep()
        return client

    def has_server(self, client: Identity) -> bool:
        """Whether a process has started a door as its MCP server."""
        return client in self._servers

    def launched_door(self, connection: socket.socket) -> None:
        """Record the processes that launched this door, while its launcher lives.

        A door that Handrail itself started carries the mark, so its launchers need no record.
        """
        peer = lineage.Peer.of(connection)
        try:
            if not lineage.is_marked(peer.pid, self._reference):
                self._add(find_launchers(peer.pid))
        finally:
            peer.close()

    def refusal(self, connection: socket.socket, claimed_parent: int = 0) -> str | None:
        """Why the peer does not count as a person; None if it may be a person.

        `claimed_parent` is the parent that the peer states. It is used only where the kernel hides the real one.
        """
        peer = lineage.Peer.of(connection)
        try:
            if peer.uid == os.getuid() and lineage.is_marked(peer.pid, self._reference) and peer.is_alive():
                return self._explain_mark(peer.pid)
            if not peer.is_trusted(set(), self._reference) or self.is_agent(peer.pid, claimed_parent):
                return NO_PERSON
            return None if peer.is_alive() else NO_PERSON
        finally:
            peer.close()

    def refusal_of_process(self, process: Identity) -> str | None:
        """Why a process that runs now does not count as a person's; None if it may be."""
        refusal = self.refusal_of_marked(process)
        return NO_PERSON if refusal is None and self.is_agent(process[0]) else refusal

    def refusal_of_marked(self, process: Identity) -> str | None:
        """As `refusal_of_process`, without a look for agents above it."""
        if lineage.is_marked(process[0], self._reference):
            return self._explain_mark(process[0])
        return None if lineage.identity(process[0]) == process else NO_PERSON

    def is_launcher(self, identity: Identity) -> bool:
        """Whether this process has launched a door, itself or through a program that it started."""
        return identity in self._launchers

    def is_agent(self, pid: int, claimed_parent: int = 0) -> bool:
        """Whether a process descends from a launcher.

        A launcher without its own terminal (an editor, a desktop) is no agent for the terminals below it: they may
        be the person's.
        """
        if not self._launchers:
            return False
        if lineage.is_hidden(pid) and lineage.parent(pid) is None:
            pid = claimed_parent
        for _ in range(WALK_TRIES):
            verdict = self._search_above(pid)
            if verdict is not None:
                return verdict
        return True

    def _search_above(self, pid: int) -> bool | None:
        """Search for a launcher above a process; None if a process exited during the walk, or none is known."""
        in_terminal, above = False, pid or None
        while above:
            place = lineage.read_stat(above)
            if place is None and not lineage.is_hidden(above):
                return None
            if place is not None and place.identity in self._launchers and (place.tty or not in_terminal):
                return True
            in_terminal = in_terminal or (place is not None and place.leads_terminal)
            above = lineage.parent(above) or 0 if place is None else place.parent
        return None if above is None else False

    def _add(self, launchers: list[Identity]) -> None:
        fresh = [each for each in launchers if each not in self._launchers]
        if fresh:
            living = [each for each in self._launchers if lineage.identity(each[0]) == each]
            self._launchers = dict.fromkeys([*living, *fresh][-MOST_LAUNCHERS:])
            self._keep()
            for tell in self.on_change:
                tell()

    def _keep(self) -> None:
        lists = {"launchers": list(self._launchers), "servers": list(self._servers)}
        self.keep(json.dumps(lists).encode())

    def _explain_mark(self, pid: int) -> str:
        """A marked peer below the keeper was started by Handrail; any other has a mark that needs an explanation."""
        keeper = self._keeper_pid()
        is_below = keeper and keeper in lineage.ancestors(pid)
        return NO_PERSON if is_below else lineage.explain_mark(pid)


def _load(kept: bytes) -> tuple[dict[Identity, None], dict[Identity, None]]:
    """The launchers and clients that are still alive, oldest first.

    An earlier version stored the launchers alone. Ignores what another program stored in its own keeper.
    """
    try:
        stored: Any = json.loads(kept or b"[]")
        lists: dict[str, Any] = stored if "launchers" in stored else {"launchers": stored}
        return _living(lists.get("launchers", ())), _living(lists.get("servers", ()))
    except (ValueError, TypeError):
        return {}, {}


def _living(stored: Any) -> dict[Identity, None]:
    known = [(int(pid), int(start)) for pid, start in stored]
    return dict.fromkeys(each for each in known if lineage.identity(each[0]) == each)


def find_launchers(door: int) -> list[Identity]:
    """The processes above a door that belong to its agent, nearest first: its parent, and up to the session's leader.

    A person's shell, a session manager and another user's process end the walk. So does a process that has adopted its
    child: it did not launch it.
    """
    child = lineage.read_stat(door)
    found: list[Identity] = []
    above = _find_parent(child) if child is not None else None
    while above is not None:
        found.append(above.identity)
        child, above = above, _find_parent(above)
        if above is None or above.session != child.session or not _is_one_application(above, child):
            break
    return found


def _find_parent(child: lineage.Stat) -> lineage.Stat | None:
    """The process that launched `child`; None if that is the person's shell, the system's, or a different process."""
    above = lineage.read_stat(child.parent)
    if above is None or above.pid <= 1 or above.name in ADOPTERS or not _is_own(above.pid):
        return None
    if above.session != child.session:
        # Only the leader of a session was launched by a process outside of it; any other has been adopted.
        return above if child.pid == child.session and _is_one_application(above, child) else None
    is_typed = above.tty and above.group != child.group and above.name in SHELLS
    return None if is_typed else above


def _is_own(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            line = next(line for line in status if line.startswith(b"Uid:"))
    except (OSError, StopIteration):
        return False
    return int(line.split()[1]) == os.getuid()


def _is_one_application(above: lineage.Stat, child: lineage.Stat) -> bool:
    """Whether two processes share a terminal or a control group. Desktops give each application its own group."""
    return bool(above.tty) or _cgroup(above.pid) == _cgroup(child.pid)


def _cgroup(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cgroup", "rb") as file:
            return file.read()
    except OSError:
        return b""


class WaitingProcess(NamedTuple):
    """A process that waits for the program that it launched."""

    pid: int
    start: int
    name: str

    @property
    def identity(self) -> Identity:
        return self.pid, self.start


def find_waiting_process(connection: socket.socket) -> WaitingProcess | None:
    """The process that waits for a hook or a door: its parent or, if that is a shell, the parent of the shell."""
    peer = lineage.Peer.of(connection)
    try:
        above = _above(lineage.read_stat(peer.pid))
        above = _above(above) if above is not None and above.name in SHELLS else above
        return None if above is None else WaitingProcess(above.pid, above.start, above.name)
    finally:
        peer.close()


def _above(child: lineage.Stat | None) -> lineage.Stat | None:
    return lineage.read_stat(child.parent) if child is not None and child.parent > 1 else None


def find_ancestors(pid: int) -> set[int]:
    """The process itself and those above it, as far as they are known."""
    return set(lineage.ancestors(pid))


def find_tty(pid: int) -> str:
    """The name of a process's terminal device below /dev, such as pts/3; empty if it has none."""
    place = lineage.read_stat(pid)
    if place is None or place.tty == 0:
        return ""
    major, minor = os.major(place.tty), os.minor(place.tty)
    if major in range(136, 144):  # pseudo-terminals, 256 for each number
        return f"pts/{(major - 136) * 256 + minor}"
    return f"tty{minor}" if major == 4 else ""  # virtual consoles


def read_arguments(process: Identity) -> tuple[str, ...]:
    """The command line of a process; empty if it has ended or cannot be read."""
    try:
        with open(f"/proc/{process[0]}/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
    except OSError:
        return ()
    return tuple(map(os.fsdecode, words)) if lineage.identity(process[0]) == process else ()


async def wait_for_exit(pid: int, start: int) -> None:
    """Wait until this process has exited."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if lineage.identity(pid) == (pid, start):
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def is_other_user(connection: socket.socket) -> bool:
    """Whether the peer runs as another user. The directory's mode should already prevent that."""
    peer = lineage.Peer.of(connection)
    try:
        return peer.uid != os.getuid()
    finally:
        peer.close()


def explain_no_person() -> str | None:
    """Why this daemon can take no process for a person; None if it can."""
    return lineage.explain_no_reference()


def runs_inside_handrail() -> bool:
    """Whether this process descends from a process that Handrail started."""
    return lineage.is_marked(os.getpid())
