"""The state of a process that does not answer, as a sentence for people: which process, why, and the remedy.

Standard library only.
"""

from __future__ import annotations

import sys

END_BY_FORCE = "`handrail down --force` ends it and everything that it started; then run `handrail up`."
"""The remedy for a keeper that hangs."""
_STATES = {
    "T": "it is stopped (SIGSTOP); `kill -CONT {pid}` lets it continue",
    "t": "a debugger has stopped it",
    "D": "it waits for a disk or a network file system",
    "Z": "it has exited",
}


def describe_hang(name: str, pid: int, remedy: str) -> str:
    """The sentence for a process that does not answer, such as "The keeper (process 7) does not answer: …"."""
    why = _STATES.get(read_state(pid), "").format(pid=pid)
    return f"The {name} (process {pid}) does not answer{f': {why}' if why else ''}. {remedy}"


def read_state(pid: int) -> str:
    """The letter that /proc gives for its state; empty if unknown."""
    fields = _read_stat(pid)
    return fields[0].decode() if fields else ""


def read_ticks(pid: int) -> int:
    """The processor time that it has used, in clock ticks; 0 if unknown."""
    fields = _read_stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else 0


def _read_stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the name; empty without such a file."""
    if sys.platform != "linux":
        return []
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return []
