"""A stand-in program for the daemon, for tests of its start: it locks, listens and answers the hello.

It runs as a script. It exits when its home is gone, or after a minute.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path


def main() -> None:
    home = Path(os.environ["HANDRAIL_HOME"])
    with (home / "attempts").open("a") as attempts:
        attempts.write("x")
    lock = os.open(home / "daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another daemon lives here")
    about = about_itself(lock)
    with (home / "started").open("a") as started:
        started.write(json.dumps(about) + "\n")
    (home / "daemon.sock").unlink(missing_ok=True)
    greet_all(home)


def about_itself(lock: int) -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "argv": sys.argv[1:],
        "cwd": str(Path.cwd()),
        "environ": sorted(os.environ),
        "umask": read_umask(),
        "session": os.getsid(0),
        "group": os.getpgrp(),
        "descriptors": [fd for fd in range(3, 64) if fd != lock and is_open(fd)],
    }


def read_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def greet_all(home: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(home / "daemon.sock"))
    listener.listen(64)
    listener.settimeout(0.2)
    ends = time.monotonic() + 60
    while home.exists() and time.monotonic() < ends:
        try:
            caller = listener.accept()[0]
        except TimeoutError:
            continue
        with caller, caller.makefile("rb") as lines:
            lines.readline()
            caller.sendall(json.dumps({"handrail": 1, "ok": True, "pid": os.getpid()}).encode() + b"\n")


if __name__ == "__main__":
    main()
