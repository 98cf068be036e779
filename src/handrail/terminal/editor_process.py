"""The process of an editor at the other end of a unix socket: its main process, or that of its server.

An editor's extension host is a direct child of that process. Shells in its terminal, and programs that extensions start,
are further below, and a process that forks twice is adopted by another one. So the parent of a peer tells an extension
host from all of them.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from handrail.keeper import lineage
from handrail.terminal.person_check import ADOPTERS, SHELLS, Identity

Relation = Literal["parent", "peer"]
"""Which process is the editor's: the parent of the peer (an extension host), or the peer itself (an agent host client)."""

UNREADABLE = (
    "The process of this editor cannot be read in /proc, so it cannot be recognised. Decide on the page."
)
EXITED = "The process that connected has exited."
FIRST_PROCESS = (
    "The program that started this one is process 1, which adopts processes of others, so it cannot be recognised as an "
    "editor. Start the editor below an init (`docker run --init`), or decide on the page."
)
COMMAND_MAX = 300
"""Characters kept of a command line, which a page has to show."""


class EditorProcess(NamedTuple):
    """A running process, identified by its pid and its start."""

    pid: int
    start: int
    """In clock ticks after the boot."""
    program: str
    """The path of its executable; its name if that is hidden."""
    command: str
    """Its command line, as the process itself states it."""
    started_at: int
    """In milliseconds since 1970."""

    @property
    def identity(self) -> Identity:
        return self.pid, self.start


def find_editor_process(connection: socket.socket, relation: Relation) -> EditorProcess | str:
    """The editor's process at the other end, or the reason why it is unknown, as a sentence.

    A peer that passed its socket on and exited is recognised by its pidfd, and a parent that exited by the peer's new one.
    """
    peer = lineage.Peer.of(connection)
    try:
        place = lineage.read_stat(peer.pid)
        if place is None:
            return UNREADABLE if peer.is_alive() else EXITED
        process = _read_process(place.pid if relation == "peer" else place.parent)
        again = lineage.read_stat(peer.pid)
        if again is None or again.identity != place.identity or not peer.is_alive():
            return EXITED
        return UNREADABLE if again.parent != place.parent else process
    finally:
        peer.close()


def is_running(identity: Identity) -> bool:
    """Whether this very process still runs."""
    return lineage.identity(identity[0]) == identity


def _read_process(pid: int) -> EditorProcess | str:
    if pid <= 1:
        return FIRST_PROCESS
    place = lineage.read_stat(pid)
    if place is None:
        return UNREADABLE
    if place.name in SHELLS or place.name in ADOPTERS:
        return f"Process {pid} ({place.name}), which started this one, is no editor. Decide on the page."
    return EditorProcess(
        pid, place.start, _read_program(pid, place.name), _read_command(pid), _start_ms(place)
    )


def _read_program(pid: int, name: str) -> str:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/exe").readlink())
    return name


def _read_command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(8192).rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode(errors="replace")[:COMMAND_MAX]


def _start_ms(place: lineage.Stat) -> int:
    return _boot_ms() + place.start * 1000 // os.sysconf("SC_CLK_TCK")


def _boot_ms() -> int:
    try:
        with open("/proc/stat", "rb") as file:
            line = next(line for line in file if line.startswith(b"btime "))
    except (OSError, StopIteration):
        return 0
    return int(line.split()[1]) * 1000
