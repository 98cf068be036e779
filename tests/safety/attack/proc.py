"""Tries: what /proc and ptrace tell of the daemon, its launcher, the keeper and the warden above us."""

import ctypes
import errno
import os
from pathlib import Path

from .ground import Got, Order, Try, about, above, keeper_pid, parent

PTRACE_ATTACH = 16
WHO = ("daemon", "keeper", "warden", "launcher")
FILES = ("environ", "mem", "maps", "fd", "auxv", "syscall", "stack", "cwd", "exe", "root")


def reads(who: str, what: str) -> Try:
    def attempt(_order: Order) -> Got:
        path = Path(f"/proc/{_pid(who)}/{what}")
        try:
            if what == "fd":
                return Got(0, str(list(path.iterdir())))
            if what in ("cwd", "exe", "root"):
                return Got(0, str(path.readlink()))
            with path.open("rb") as file:
                return Got(0, repr(file.read(100)))
        except OSError as error:
            return _refused(error)

    return attempt


def traces(who: str) -> Try:
    def attempt(_order: Order) -> Got:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_ATTACH, _pid(who), 0, 0) == 0:
            return Got(0, "attached")
        return _refused(OSError(ctypes.get_errno(), "ptrace"))

    return attempt


TRIES: dict[str, Try] = {
    **{f"{what} of the {who}": reads(who, what) for who in WHO for what in FILES},
    **{f"ptrace of the {who}": traces(who) for who in WHO},
}


def _refused(error: OSError) -> Got:
    """Only a permission that is missing counts as a refusal."""
    return Got(1 if error.errno in (errno.EPERM, errno.EACCES) else 0, str(error))


def _pid(who: str) -> int:
    match who:
        case "daemon":
            return about()["pid"]
        case "keeper":
            return keeper_pid()
        case "launcher":
            tasks = Path(f"/proc/{about()['pid']}/task").glob("*/children")
            children = (int(pid) for task in tasks for pid in task.read_text().split())
            return next(pid for pid in children if pid != keeper_pid())
        case _:
            return next(pid for pid in above(os.getpid()) if parent(pid) == keeper_pid())
