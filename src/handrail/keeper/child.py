"""The last steps of a leader before its program runs: session, terminal, limits, directory, exec.

Runs in the child that the warden forks, and never returns. Does not know wardens, spools or sockets; what goes
wrong is written as a sentence to the descriptor `complain`, which a successful exec closes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import termios
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from handrail.keeper.protocol import Start


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
