"""The keeper process: take the lock, open the log and the socket, install signal handlers, run the keeper.

Usage: `python -I -S …/handrail/keeper/__main__.py [--idle SECONDS] [--reference BYTES] [--python-option OPTION]`. The
environment selects the paths (see `paths`). The daemon passes its lineage reference, because another process could lower the
keeper's own limit at its start, and the option with which the interpreter starts a daemon (`paths.own_python`).
It is started by path and in isolated mode: the caller's directory and PYTHONPATH must not choose the code that runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.append(str(Path(__file__).resolve().parents[2]))

import fcntl
import gc
import os
import resource
import signal
import socket

from handrail.hardening import hide_memory
from handrail.keeper import system, warden
from handrail.keeper.server import Keeper
from handrail.paths import Places
from handrail.regular_file import read_regular_file

IDLE_SECONDS = 60.0
DAEMON = ("-m", "handrail", "up", "--foreground", "--no-open")


def main(arguments: list[str]) -> int:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    idle = float(options.get("--idle", IDLE_SECONDS))
    reference = int(options["--reference"]) if "--reference" in options else None
    places = Places.find(os.environ)
    places.make()
    lock = os.open(places.keeper_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"A keeper already runs on {places.state}.\n")
        return 0
    os.truncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    _isolate(places)
    listener = _listen(places)
    limits = _raise_descriptors()
    python = (sys.executable, options.get("--python-option", "-P"))
    keeper = Keeper(
        listener, str(places.spool), limits, idle, lambda: _start_daemon(python, places), reference
    )
    warden.rehearse()
    gc.collect()
    gc.freeze()  # wardens share these pages (copy on write); a collection would touch and copy them
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    keeper.run(system.wake_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT))
    places.keeper_socket.unlink(missing_ok=True)
    return 0


def _isolate(places: Places) -> None:
    """Detach from the caller: own session, cwd `/`, stdin from /dev/null, output to the log."""
    hide_memory()
    system.adopt_orphans()
    system.set_name("handrail-keeper")
    if os.getpid() != os.getsid(0):
        os.setsid()
    os.chdir("/")
    log = os.open(places.logs / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)
    os.close(log)
    os.close(null)


def _listen(places: Places) -> socket.socket:
    path = places.keeper_socket
    path.unlink(missing_ok=True)  # we hold the lock, so the process that bound it is dead
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def _raise_descriptors() -> tuple[int, int]:
    """Raise the limit on open files to its maximum; return the old limits, which children get back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard


def _start_daemon(python: tuple[str, str], places: Places) -> int:
    """Start a daemon in a new session with the keeper's environment: without the lineage mark, under no warden.

    It gets the port that was requested of the last daemon, as with `handrail restart`: clients know it.
    """
    log = str(places.logs / "daemon.log")
    return os.posix_spawn(
        python[0],
        (*python, *DAEMON, *_port_option(places)),
        {**os.environ, **places.environment, "HANDRAIL_UNATTENDED": "1"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGHUP, signal.SIGXFSZ],
    )


def _port_option(places: Places) -> tuple[str, ...]:
    try:
        requested = int(read_regular_file(places.port).split()[0])
    except (OSError, ValueError, IndexError):
        return ()
    return ("--port", str(requested)) if 0 < requested < 1 << 16 else ()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
