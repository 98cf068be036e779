"""Daemon, keeper and port, as the doctor finds them; with real processes."""

import os
import select
import signal
import socket

import pytest
from tests.support.cli_home import BOUND, Home

from handrail.doctor.checks import FORCE, Finding, check_processes
from handrail.paths import Places

pytestmark = pytest.mark.e2e


def found(home: Home) -> dict[str, Finding]:
    return {finding.name: finding for finding in check_processes(Places.under(home.path), within=BOUND)}


def kill(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        assert select.select([descriptor], [], [], BOUND)[0]
    finally:
        os.close(descriptor)


def test_a_daemon_that_runs_is_ok_with_its_keeper_and_version(alone: Home) -> None:
    alone.up()
    known = alone.ok("status", "--json").json
    daemon = found(alone)
    assert daemon["daemon"].says == f"Runs at {known['url']} (pid {known['pid']})."
    assert daemon["keeper"].says == f"Lives (pid {known['keeper_pid']})."
    assert daemon["version"].level == "ok"


def test_a_daemon_that_is_down_or_was_killed_is_a_warning_with_its_command(alone: Home) -> None:
    assert (found(alone)["daemon"].level, found(alone)["daemon"].fix) == ("warn", "handrail up")
    (alone.path / "config.toml").write_text("[daemon]\nrestart = false\n")
    alone.up()
    kill(alone.ok("status", "--json").json["pid"])
    assert found(alone)["daemon"].level == "warn"
    assert "still holds what the last daemon started" in found(alone)["keeper"].says
    alone.ok("down")
    assert "keeper" not in found(alone)


def test_a_daemon_that_the_keeper_restarted_is_a_warning(alone: Home) -> None:
    alone.up()
    assert "restarts" not in found(alone)
    before = alone.ok("status", "--json").json
    kill(before["pid"])
    alone.comes_up()
    assert (found(alone)["restarts"].level, found(alone)["keeper"].level) == ("warn", "ok")
    assert "restarted the daemon once" in found(alone)["restarts"].says
    after = alone.ok("status", "--json").json
    assert (after["restarts"], after["pid"] != before["pid"]) == (1, True)
    assert "restarted by the keeper 1 time, last" in alone.ok("status").out


def test_a_daemon_of_another_version_is_a_warning(alone: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.up()
    monkeypatch.setattr("handrail.doctor.checks.__version__", "9.9.9")
    assert (found(alone)["version"].level, found(alone)["version"].fix) == ("warn", "handrail restart")


def test_a_daemon_that_hangs_is_bad(alone: Home) -> None:
    alone.up()
    pid = alone.ok("status", "--json").json["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        looked = next(check_processes(Places.under(alone.path), within=0.5))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (looked.name, looked.level, looked.fix) == ("daemon", "bad", FORCE)


def test_a_port_that_another_program_holds_is_a_warning(alone: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (alone.path / "config.toml").write_text(f"[server]\nport = {port}\n")
        assert found(alone)["port"].level == "warn"
        alone.up()
        assert f"Port {port} is taken by another program, so " in found(alone)["port"].says


def test_a_port_that_was_taken_at_the_start_and_is_free_now_is_said(alone: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (alone.path / "config.toml").write_text(f"[server]\nport = {port}\n")
        alone.up()
    looked = found(alone)["port"]
    assert looked.says.endswith(f"because {port} was taken at the start; it is free now.")
    assert (looked.level, looked.fix) == ("warn", "handrail down, then handrail up")
