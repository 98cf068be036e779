"""Starting a daemon: detached from whoever asked, in a clean environment, and honest when it fails."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.scripted_daemon import BOUND, STANDIN_DAEMON, DaemonFinder, ScriptedDaemon, started_daemons
from tests.support.standin_daemon import read_umask

from handrail.door.start_daemon import LOG_MAX, STARTS, UNATTENDED, clean
from handrail.paths import Places


def standin_as_python(home: Path) -> str:
    """The stand-in as a program that takes the arguments Python would."""
    program = home / "python"
    program.write_text(f"#!{sys.executable}\n{Path(STANDIN_DAEMON[1]).read_text()}")
    program.chmod(0o700)
    return str(program)


def test_the_daemon_belongs_to_no_process_of_its_callers(home: Path) -> None:
    read, write = os.pipe()
    looker = DaemonFinder(home, executable=standin_as_python(home), inherits=(write,))
    pid = looker.found()
    os.close(read)
    os.close(write)
    [about] = started_daemons(home)
    assert about["pid"] == pid
    assert about["argv"][0] in ("-I", "-P")  # neither imports anything from the working folder
    assert about["argv"][1:] == ["-m", "handrail", "up", "--foreground", "--no-open"]
    assert about["cwd"] == "/"
    assert about["descriptors"] == []
    assert about["session"] not in (os.getsid(0), pid)
    assert about["group"] not in (os.getpgrp(), looker.process.pid)
    assert about["umask"] == read_umask()  # the files that an agent's commands create have the usual modes
    assert about["environ"]
    assert set(about["environ"]) <= {*clean(os.environ), "HANDRAIL_HOME", UNATTENDED, "LC_X", "LC_CTYPE"}
    assert "LC_X" in about["environ"]
    assert stat.S_IMODE((home / "logs" / "daemon.out").stat().st_mode) == 0o600


def test_only_what_says_where_we_are_is_inherited() -> None:
    kept = {
        "HOME": "h",
        "PATH": "p",
        "LC_ALL": "c",
        "XDG_STATE_HOME": "x",
        "HANDRAIL_HOME": "r",
        "SHELL": "s",
    }
    dropped = {"A_SECRET": "1", "PYTHONPATH": "2", "LD_PRELOAD": "3", "HANDRAIL_WORKSPACE": "4", "TERM": "5"}
    assert clean({**kept, **dropped}) == kept


def test_what_a_person_wants_it_to_have_is_inherited_too() -> None:
    given = {"HOME": "h", "A_KEY": "k", "A_SECRET": "1"}
    assert clean(given, ["A_KEY", "ANOTHER"]) == {"HOME": "h", "A_KEY": "k"}


def test_a_daemon_that_ends_while_starting_is_quoted(home: Path) -> None:
    sentence = DaemonFinder(home, sys.executable, "-c", "raise SystemExit('no port is free')").failed()
    assert "it ended while starting, saying: no port is free" in sentence
    assert str(home / "logs" / "daemon.out") in sentence
    assert "`handrail up --foreground`" in sentence


@pytest.mark.skipif(os.getuid() != 0 or sys.platform != "linux", reason="mounts a small file system")
def test_a_full_disk_is_named_where_the_daemon_cannot_say_so_itself(home: Path) -> None:
    home.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(home)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        sentence = DaemonFinder(home, sys.executable, "-c", "raise SystemExit(1)").failed()
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)
    assert f"it ended while starting, and the disk of {home} is full" in sentence
    assert "Free some space" in sentence


def test_a_program_that_is_not_there_is_named(home: Path) -> None:
    sentence = DaemonFinder(home, "/nowhere/python").failed()
    assert "No such file or directory" in sentence
    assert "/nowhere/python" in sentence


def test_a_daemon_that_never_comes_is_given_up_in_time(home: Path) -> None:
    wait = "import os, time\nfor _ in range(100): os.path.exists(os.environ['HANDRAIL_HOME']) and time.sleep(0.1)"
    assert (
        "nobody came to its socket in time"
        in DaemonFinder(home, sys.executable, "-c", wait, within=0.3).failed()
    )


def test_a_daemon_that_starts_slowly_is_waited_for_while_it_is_busy(home: Path) -> None:
    busy = "import runpy, sys, time\nwhile time.process_time() < 1: pass\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    argv = (sys.executable, "-c", busy, STANDIN_DAEMON[1])
    assert DaemonFinder(home, *argv, within=0.5).found() == started_daemons(home)[0]["pid"]


def test_while_another_process_starts_it_we_only_wait(home: Path, places: Places) -> None:
    places.make()
    with places.daemon_lock.with_suffix(".start").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "in time" in DaemonFinder(home, *STANDIN_DAEMON, within=0.5).failed()
        assert started_daemons(home) == []
    assert DaemonFinder(home, *STANDIN_DAEMON).found() == started_daemons(home)[0]["pid"]


@contextmanager
def scripted_keeper(places: Places) -> Generator[Callable[[str], None]]:
    """A keeper that answers, one after the other, what it is told to."""
    places.make()
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.settimeout(BOUND)
        keeper.bind(str(places.keeper_socket))
        keeper.listen()

        def answer(word: str) -> None:
            with keeper.accept()[0] as asked, asked.makefile("rb") as lines:
                assert json.loads(lines.readline()) == {"is": "hello", "protocol": 1, "want": "start_daemon"}
                welcome = {"is": "welcome", "protocol": 1, "pid": 5, "kept": 0, "answer": word}
                asked.sendall(json.dumps(welcome).encode() + b"\n")

        yield answer


def test_a_living_keeper_is_asked_to_start_it_until_it_does(home: Path, places: Places) -> None:
    with scripted_keeper(places) as answer:
        looker = DaemonFinder(home, executable="/nowhere/python")
        answer("already")  # it has not seen yet that its daemon died
        answer("started")
        answer("started")  # the first one died before it listened
        with ScriptedDaemon(places) as peer:
            peer.seat()
            assert looker.found() == os.getpid()


def test_what_a_person_wants_it_to_have_reaches_it_though_a_keeper_lives(home: Path, places: Places) -> None:
    with scripted_keeper(places):  # which would start one without it
        looker = DaemonFinder(home, executable=standin_as_python(home), keep="A_SECRET")
        looker.found()
        assert "A_SECRET" in started_daemons(home)[0]["environ"]


def test_a_keeper_whose_daemons_all_die_is_not_asked_for_ever(home: Path, places: Places) -> None:
    with scripted_keeper(places) as answer:
        looker = DaemonFinder(home, executable="/nowhere/python")
        for _ in range(STARTS + 1):
            answer("started")
        assert "it ended while starting, again and again" in looker.failed()


def test_a_keeper_that_will_not_does_not_keep_us_from_starting_it(home: Path, places: Places) -> None:
    places.make()
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.settimeout(BOUND)
        keeper.bind(str(places.keeper_socket))
        keeper.listen()
        looker = DaemonFinder(home, executable=standin_as_python(home))
        with keeper.accept()[0] as asked:
            asked.recv(1000)
            asked.sendall(b'{"is": "refused", "why": "busy"}\n')
        assert looker.found() == started_daemons(home)[0]["pid"]


def test_a_log_that_nobody_rotates_is_cut(home: Path, places: Places) -> None:
    places.make()
    log = places.logs / "daemon.out"
    log.write_bytes(b"x" * (LOG_MAX + 1))
    DaemonFinder(home, sys.executable, "-c", "print('short')").failed()
    assert log.read_bytes() == b"short\n"
