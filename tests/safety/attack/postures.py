"""Postures: where in the process tree an attack stands, and what it has done to those above it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .ground import HOME, Got, Order, Try, about, above, keeper_pid, kill, lives, until
from .standin import be_a_keeper
from .web import request


def directly() -> None:
    """A child of the command, and nothing more."""


def after_a_double_fork() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork():
        _live_on()
    os.setsid()
    between = os.getpid()
    if os.fork():
        os._exit(0)
    until(lambda: os.getppid() != between)


def after_killing_its_warden() -> None:
    after_a_double_fork()
    os.kill(keeper_pid(), signal.SIGSTOP)  # which would otherwise end us at once
    ancestors = list(above(os.getpid()))
    for pid in ancestors[: ancestors.index(keeper_pid())]:
        kill(pid)
    until(lambda: os.getppid() == keeper_pid())


def after_killing_the_keeper() -> None:
    after_killing_its_warden()
    was = keeper_pid()
    kill(was)
    until(lambda: os.getppid() != was)


def after_killing_the_keeper_and_waiting_for_another() -> None:
    was = keeper_pid()
    after_killing_the_keeper()
    until(lambda: keeper_pid() != was and (HOME / "keeper.sock").exists())


def after_killing_the_daemon_which_a_door_starts_again() -> None:
    after_a_double_fork()
    kill(about()["pid"])
    _open_a_door()


def after_killing_both_and_starting_a_daemon() -> None:
    _kill_both()
    _start_a_daemon("--foreground")


def after_killing_both_and_starting_a_quiet_daemon() -> None:
    _kill_both()
    _start_a_daemon("--foreground", "--no-open")


def after_killing_both_and_having_a_door_start_a_daemon() -> None:
    _kill_both()
    _open_a_door()


def after_killing_both_and_standing_in_for_the_keeper() -> None:
    _kill_both()
    if os.fork() == 0:
        be_a_keeper()
    until((HOME / "keeper.sock").exists)
    _start_a_daemon("--foreground", "--no-open")


ALL: dict[str, Callable[[], None]] = {
    posture.__name__: posture
    for posture in (
        directly,
        after_a_double_fork,
        after_killing_its_warden,
        after_killing_the_keeper,
        after_killing_the_keeper_and_waiting_for_another,
        after_killing_the_daemon_which_a_door_starts_again,
        after_killing_both_and_starting_a_daemon,
        after_killing_both_and_starting_a_quiet_daemon,
        after_killing_both_and_having_a_door_start_a_daemon,
        after_killing_both_and_standing_in_for_the_keeper,
    )
}
said_at_start: list[str] = []


def uses_a_link_that_was_printed(_order: Order) -> Got:
    """The link that a daemon started by us may have printed."""
    said = "".join(said_at_start)
    if "#code=" not in said:
        return Got(1, said)
    code = said.partition("#code=")[2].split()[0]
    status, body = request("POST", "/api/sign-in", None, {"code": code})
    return Got(0 if status == 200 else 1, body)


TRIES: dict[str, Try] = {"a printed link": uses_a_link_that_was_printed}


def _live_on() -> NoReturn:
    """The command itself has to stay, or its terminal would be swept, until all is told."""
    try:
        until(Path("got.json").exists)
    finally:
        os._exit(0)


def _kill_both() -> None:
    after_killing_its_warden()
    kill(about()["pid"])
    kill(keeper_pid())
    for name in ("daemon.json", "daemon.sock", "keeper.sock"):
        (HOME / name).unlink(missing_ok=True)


def _start_a_daemon(*options: str) -> None:
    """Be the one who starts it, and read what it prints."""
    out = Path("daemon.said")
    with out.open("w") as said:
        argv = [sys.executable, "-m", "handrail", "up", *options]
        daemon = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
    until(lambda: about().get("pid") == daemon.pid or daemon.poll() is not None)
    until(lambda: "--no-open" in options or daemon.poll() is not None or "mcp add" in out.read_text())
    said_at_start.append(out.read_text())


def _open_a_door() -> None:
    argv = [sys.executable, "-m", "handrail", "mcp"]
    door = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert door.stdin is not None
    assert door.stdout is not None
    door.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    door.stdin.flush()
    door.stdout.readline()
    until(lambda: about().get("pid") and lives(about()["pid"]))
