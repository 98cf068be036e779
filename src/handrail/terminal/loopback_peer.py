"""The processes at the other end of a TCP connection over loopback, found in /proc (Linux).

Fails closed: a connection whose holders cannot be found or read has no known process.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from handrail.keeper import lineage
from handrail.terminal.person_check import DoorLaunchers, Identity

IS_SUPPORTED = sys.platform == "linux"
"""Whether connections can be traced to processes at all."""
NO_PROCESS = "The program at the other end of this connection could not be recognised."
_TABLE = Path("/proc/net/tcp")
_ESTABLISHED = "01"


def find_connection_holders(client: tuple[str, int], server: tuple[str, int]) -> list[Identity]:
    """The processes of this user that hold the client's end of an IPv4 connection; empty if none is visible."""
    is_ipv4 = ":" not in client[0] + server[0]
    inode = _find_inode(_hex_address(client), _hex_address(server)) if is_ipv4 else None
    if inode is None:
        return []
    target = f"socket:[{inode}]"
    return [holder for pid in _own_processes() if (holder := _identity_if_holder(pid, target)) is not None]


def find_refusal(
    launchers: DoorLaunchers,
    client: tuple[str, int],
    server: tuple[str, int],
    unknown: str | None = NO_PROCESS,
    *,
    agents: bool = True,
) -> str | None:
    """Why the process at the client's end does not count as a person's; None if it may be. Blocks.

    `unknown` is the refusal of a process that cannot be found. Without `agents`, only what Handrail started is refused.
    """
    holders = find_connection_holders(client, server)
    refuse = launchers.refusal_of_process if agents else launchers.refusal_of_marked
    refusals = [refuse(holder) for holder in holders]
    return next(filter(None, refusals), None) if refusals else unknown


def _hex_address(address: tuple[str, int]) -> str:
    """An address as /proc/net/tcp has it: the IPv4 address as a number in the byte order of this machine."""
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def _find_inode(client: str, server: str) -> int | None:
    """The inode of the client's socket, if a process of this user has it open."""
    try:
        rows = [line.split() for line in _TABLE.read_text().splitlines()[1:]]
    except OSError:
        return None
    for row in rows:
        if row[1:4] == [client, server, _ESTABLISHED] and int(row[7]) == os.getuid():
            return int(row[9])
    return None


def _own_processes() -> Iterator[int]:
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                yield int(entry.name)


def _identity_if_holder(pid: int, target: str) -> Identity | None:
    identity = lineage.identity(pid)
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            is_holder = any(_read_target(each.path) == target for each in descriptors)
    except OSError:  # it has exited, or hides its descriptors
        return None
    return identity if is_holder and lineage.identity(pid) == identity else None


def _read_target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
