"""The leader: the program of a terminal, started by its warden.

The warden enters the checked directory and checks the programs; the leader inherits the directory, as it inherits the
lineage mark. On Linux, posix_spawn starts it, which copies nothing of the warden. A fork starts a program that has to be
executed by its descriptor, which posix_spawn cannot do, one that this user can replace, which is checked again in the
child, and everything on macOS.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import termios
import time
from typing import TYPE_CHECKING, NoReturn

from handrail.keeper import system

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from handrail.keeper.protocol import CheckedProgram, Start


class NotStartedError(Exception):
    """The reason why the program does not run, written for people."""


def start(order: Start, stdio: tuple[int, ...]) -> int:
    """Start the program of an order with this PTY, or these pipes. Returns its pid. Raises NotStartedError."""
    env = {**order.env, "PWD": order.cwd}
    if len(stdio) != (3 if order.pipes else 1):
        raise NotStartedError("The program could not be started: its terminal was lost on the way.")
    try:
        with _directory(order.cwd, order.cwd_id):
            _check_programs(order.programs)
            if order.exact and order.programs and system.can_execute_descriptors():
                return _start_exact(order, env, stdio)
            if system.LINUX and not any(_is_replaceable(program.path) for program in order.programs):
                return _spawn(order.argv, env, stdio)
            return _fork(lambda: _execute(order, env), stdio)
    except (OSError, ValueError) as error:
        raise NotStartedError(f"The program could not be started: {error}") from None


_OPEN_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
"""O_PATH needs no read permission."""


@contextlib.contextmanager
def _directory(path: str, expected: tuple[int, int] | None) -> Generator[None]:
    """Change the directory through a descriptor, so that the checked directory is the one entered (TOCTOU)."""
    _enter(path, expected)
    try:
        yield
    finally:
        os.chdir("/")


def _enter(path: str, expected: tuple[int, int] | None) -> None:
    try:
        descriptor = os.open(path, _OPEN_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotStartedError(f"The directory {path} does not exist.") from None
    except NotADirectoryError:
        raise NotStartedError(f"{path} is not a directory.") from None
    except PermissionError:
        raise NotStartedError(_describe_forbidden(path)) from None
    try:
        status = os.fstat(descriptor)
        if expected is not None and (status.st_dev, status.st_ino) != expected:
            raise NotStartedError(
                f"{path} is no longer the directory that was checked: another was put in its place. Nothing was run."
            )
        os.fchdir(descriptor)
    except PermissionError:
        raise NotStartedError(_describe_forbidden(path)) from None
    finally:
        os.close(descriptor)


def _describe_forbidden(directory: str) -> str:
    return f"The directory {directory} may not be entered: permission denied."


_LOOKS = 20
_LOOK_SECONDS = 0.00005
"""A path that is switched back and forth is caught by looking more than once."""
_SYSTEM_FOLDERS = ("/usr/", "/bin/", "/sbin/")


def _check_programs(programs: tuple[CheckedProgram, ...]) -> None:
    """Look at each program again just before the start. Raises NotStartedError if it is no longer the checked file."""
    looks = _LOOKS if any(_is_replaceable(program.path) for program in programs) else 1
    for look in range(looks):
        for program in programs:
            if _identity(program.path) != program.identity:
                raise NotStartedError(_describe_replaced(program))
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


_ALTERED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD),
    *(signal.SIGPIPE, signal.SIGXFSZ),
)
"""Signals that Python, the keeper or the warden ignore or handle. An ignored signal would stay ignored across exec."""


def _spawn(argv: tuple[str, ...], env: Mapping[str, str], stdio: tuple[int, ...]) -> int:
    """Start a program in a session of its own. A PTY that the session opens becomes its controlling terminal."""
    if len(stdio) == 1:
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(stdio[0]), os.O_RDWR, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, 0, target) for target in (1, 2)]
    else:
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(stdio)]
    failure = errno.ENOENT  # not the error itself, which holds this frame: a warden collects no garbage
    for path in _paths_of(argv[0], env):
        try:
            return os.posix_spawn(
                path, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_ALTERED
            )
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            failure = (error.errno or failure) if failure == errno.ENOENT else failure
    raise NotStartedError(_describe_error(argv[0], failure))


def _paths_of(program: str, env: Mapping[str, str]) -> list[str]:
    """Where a program may lie: its path, or its name in each folder of the PATH that it gets."""
    if "/" in program:
        return [program]
    return [os.path.join(folder, program) for folder in os.get_exec_path(env)]


def _start_exact(order: Start, env: Mapping[str, str], stdio: tuple[int, ...]) -> int:
    """Start the first checked program by its descriptor, as bash would: `_`, `SHLVL`, message and exit code."""
    program = order.programs[0]
    descriptor = os.open(program.path, _OPEN_ONLY | os.O_CLOEXEC)
    try:
        if _identity(descriptor) != program.identity:
            raise NotStartedError(_describe_replaced(program))
        exact = {"SHLVL": "0", **env, "_": program.path}
        return _fork(lambda: _execute_exact(descriptor, order, exact), stdio)
    finally:
        os.close(descriptor)


def _execute_exact(descriptor: int, order: Start, env: Mapping[str, str]) -> NoReturn:
    program, shell, argv = order.programs[0], order.argv[0], order.exact
    if _identity(descriptor) != program.identity:  # this process can be seen, and was perhaps stopped
        raise NotStartedError(_describe_replaced(program))
    try:
        os.execve(descriptor, argv, env)
    except OSError as error:
        why = "cannot execute binary file: " if error.errno == errno.ENOEXEC else ""
        os.write(2, f"{shell}: line 1: {argv[0]}: {why}{error.strerror}\n".encode(errors="replace"))
        os._exit(127 if error.errno == errno.ENOENT else 126)


def _execute(order: Start, env: Mapping[str, str]) -> NoReturn:
    _check_programs(order.programs)  # again: this process can be seen, and was perhaps stopped
    try:
        os.execvpe(order.argv[0], order.argv, env)
    except OSError as error:
        raise NotStartedError(_describe_error(order.argv[0], error.errno)) from None


def _fork(execute: Callable[[], NoReturn], stdio: tuple[int, ...]) -> int:
    """Start a program by `execute` in a fork. A pipe, which exec closes, brings the reason why it does not run."""
    errors, report_to = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(errors)
        os.close(report_to)
        raise
    if pid == 0:
        _become(execute, stdio, report_to)
    os.close(report_to)
    with open(errors, "rb") as pipe:
        why = pipe.read()
    if why:
        os.waitpid(pid, 0)
        raise NotStartedError(why.decode(errors="replace"))
    return pid


def _become(execute: Callable[[], NoReturn], stdio: tuple[int, ...], report_to: int) -> NoReturn:
    try:
        os.setsid()
        for number in _ALTERED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if len(stdio) == 1:
            fcntl.ioctl(stdio[0], termios.TIOCSCTTY, 0)
        for target, source in enumerate(stdio * (3 // len(stdio))):
            os.dup2(source, target)
        execute()
    except NotStartedError as error:
        os.write(report_to, str(error).encode(errors="replace"))
    except BaseException as error:
        os.write(report_to, f"The program could not be started: {error}".encode(errors="replace"))
    os._exit(127)


def _describe_error(program: str, number: int | None) -> str:
    match number:
        case errno.ENOENT | errno.ENOTDIR:
            where = "" if "/" in program else " on the PATH it was given"
            return f"There is no program {program}{where}, or its interpreter is missing."
        case errno.EACCES | errno.EPERM:
            return f"The program {program} may not be executed: permission denied."
        case errno.ENOEXEC:
            return f"{program} is not a program this system can run: it lacks a first line such as #!/bin/sh."
        case errno.E2BIG:
            return f"The arguments and environment of {program} are longer than the system allows."
        case _:
            return f"The program {program} could not be started: {os.strerror(number or 0)}."
