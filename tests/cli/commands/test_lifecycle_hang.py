"""A keeper or a daemon that hangs: every command names the process and the remedy, and `down --force` is the remedy."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.cli_home import BOUND, Home, wait_for
from tests.support.processes import is_alive

from handrail.cli.client import reach
from handrail.cli.wire import Health
from handrail.paths import Places

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """A process that hangs for this long."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)


def pids(home: Home) -> tuple[int, int]:
    known = home.ok("status", "--json").json
    return known["pid"], known["keeper_pid"]


def read_health(home: Home) -> tuple[Health, float]:
    """The daemon's health, and how many seconds its answer took."""
    with reach("read", places=Places.under(home.path)) as link:
        began = time.monotonic()
        return link.get("health"), time.monotonic() - began


def sentence(pid: int, name: str = "keeper") -> str:
    return f"The {name} (process {pid}) does not answer: it is stopped (SIGSTOP)"


def test_a_hung_keeper_is_named_with_its_remedy_and_ended_by_force(alone: Home) -> None:
    alone.up()
    daemon, keeper = pids(alone)
    with stopped(keeper):
        health, took = read_health(alone)
        assert (health["keeper"], health["hung_keeper"], took < 1.0) == (None, keeper, True), took
        looks = (("status", "--json"), ("status",), ("doctor",))
        state, status, doctor, *changes = alone.run_all(*looks, ("restart",), ("down",), ("up", "--no-open"))
        assert (state.json["keeper_pid"], state.json["hung_keeper_pid"]) == (None, keeper)
        assert (status.code, sentence(keeper) in status.out) == (0, True)
        assert f"process {daemon}, keeper {keeper} does not answer" in status.out
        assert sentence(keeper) in doctor.out
        for refused in changes:
            assert refused.code == 1, refused
            assert sentence(keeper) in refused.err
            assert "`handrail down --force`" in refused.err
        assert is_alive(daemon), "a restart would have left no daemon"
        assert "Handrail is down" in alone.ok("down", "--force").out
        assert not is_alive(daemon)
        assert not is_alive(keeper)
    alone.ok("up", "--no-open")
    assert pids(alone)[1] != keeper


def test_without_a_daemon_a_hung_keeper_is_named_and_ended_too(alone: Home) -> None:
    alone.up()
    daemon, keeper = pids(alone)
    with stopped(keeper), ExitStack() as peers:
        os.kill(daemon, signal.SIGKILL)
        wait_for(lambda: not is_alive(daemon) or None, "the daemon's end")
        with alone.start("mcp", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as door:
            status, doctor = alone.run_all(("status",), ("doctor",))
            out, _ = door.communicate('{"jsonrpc":"2.0","id":1,"method":"ping"}\n', timeout=BOUND)
        assert sentence(keeper) in json.loads(out)["error"]["message"], "a client that needs a daemon"
        assert sentence(keeper) in status.err
        assert sentence(keeper) in doctor.out
        fill_queue(alone, peers)
        refused = alone.run("up", "--no-open")
        assert (refused.code, sentence(keeper) in refused.err) == (1, True), refused.err
        alone.ok("down", "--force")
        assert not is_alive(keeper)


def fill_queue(home: Home, peers: ExitStack) -> None:
    """Connect to the keeper until its queue is full, and no more connections are possible."""
    while True:
        peer = peers.enter_context(socket.socket(socket.AF_UNIX))
        peer.setblocking(False)
        try:
            peer.connect(str(Places.under(home.path).keeper_socket))
        except BlockingIOError:
            return


def test_a_hung_daemon_is_named_and_ended_by_force(alone: Home) -> None:
    alone.up()
    daemon, keeper = pids(alone)
    with stopped(daemon):
        assert sentence(daemon, "daemon") in alone.run("doctor").out
        alone.ok("down", "--force")
        assert not is_alive(daemon)
        assert not is_alive(keeper)


def test_force_ends_a_healthy_handrail_in_order(alone: Home) -> None:
    alone.up()
    assert "everything it started has ended" in alone.ok("down", "--force").out
    assert alone.run("down", "--force").code == 3, "nothing runs"
