"""The person's shell without Handrail: which one it is, and becoming it.

Owns the promise that nobody is left without a shell. Does not know why it is needed.
"""

from __future__ import annotations

import os
import pwd
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NOT_FOUND = 127
"""What shells say of a program that is not there."""

_ALTERED = (signal.SIGPIPE, *((signal.SIGXFSZ,) if hasattr(signal, "SIGXFSZ") else ()))
"""Signals that Python ignores: they would stay ignored across exec."""


def shell() -> str:
    """The caller's own, else the one the system has for this user, else the one every system has."""
    known = (os.environ.get("SHELL"), _login_shell())
    return next((path for path in known if path and os.access(path, os.X_OK)), "/bin/sh")


def find(program: str) -> str | None:
    """The file that a name on the command line stands for; None when there is none."""
    if "/" in program:
        return program if os.access(program, os.X_OK) and not os.path.isdir(program) else None
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def become(command: list[str]) -> NoReturn:
    """Be this command, or the person's shell when there is none."""
    argv = command or [shell()]
    for number in _ALTERED:
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        if not command and argv[0] != "/bin/sh":
            os.execv("/bin/sh", ["sh"])
        sys.stderr.write(f"handrail: {argv[0]}: {error.strerror}\n")
    os._exit(NOT_FOUND)


def _login_shell() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # a user without an entry, as in a container
        return None
