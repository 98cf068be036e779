"""Starting and ending Handrail, as people and scripts do it."""

import json
import os
import select
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli_home import BOUND, Agent, Home, Screen

pytestmark = pytest.mark.e2e


def post(url: str, body: object) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=BOUND) as response:
        return json.load(response)


def status(home: Home) -> dict[str, Any]:
    return home.ok("status", "--json").json


def gone(pid: int) -> bool:
    """Whether a process ends in time; one that is already gone has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], BOUND)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("calls",),
        ("calls", "-f"),
        ("approvals", "--json"),
        ("cancel", "c1"),
        ("complete", "c1"),
        ("approve", "a1"),
        ("deny", "a1"),
        ("open",),
        ("down",),
        ("credential",),
        ("credentials",),
    ],
)
def test_without_a_daemon_a_command_ends_with_3_and_names_the_one_that_helps(
    alone: Home, command: tuple[str, ...]
) -> None:
    done = alone.run(*command)
    assert done.code == 3
    assert "`handrail up`" in done.err
    assert done.out == ""


def test_up_says_where_it_is_and_a_second_up_finds_the_same_daemon(alone: Home) -> None:
    first = alone.ok("up", "--no-open")
    known = status(alone)
    assert first.out.startswith(f"Handrail runs at {known['url']} (pid {known['pid']}).\n")
    assert alone.ok("up", "--no-open").out.splitlines()[0] == first.out.splitlines()[0]


def test_up_prints_no_link_where_no_person_reads_it(alone: Home) -> None:
    """As in the output of an agent's command, or in a log."""
    out = alone.ok("up", "--no-open").out
    assert "#code=" not in out
    assert "`handrail open`" in out


def test_the_link_that_up_prints_on_a_terminal_signs_a_page_in_once(alone: Home) -> None:
    alone.up()
    with Screen(alone, "up", "--no-open") as screen:
        link = (screen.shows("/#code=") + screen.shows("\n")).split()[-1]
    url, _, code = link.partition("/#code=")
    assert post(f"{url}/api/sign-in", {"code": code})["bearer"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(f"{url}/api/sign-in", {"code": code})
    assert refused.value.code == 401
    refused.value.close()


def test_open_prints_a_fresh_link_where_there_is_no_screen(alone: Home) -> None:
    alone.up()
    links = {alone.ok("open").out.split()[-1] for _ in range(2)}
    assert len(links) == 2
    assert all("/#code=" in link for link in links)


def test_up_on_a_port_is_there(alone: Home) -> None:
    alone.up()
    port = status(alone)["url"].rpartition(":")[2]
    alone.ok("down")
    alone.ok("up", "--no-open", "--port", port)
    assert status(alone)["url"].endswith(f":{port}")
    other = alone.ok("up", "--no-open", "--port", "1")
    assert "does not use port 1" in other.err


def test_a_restart_keeps_the_port_that_up_was_told(alone: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    alone.ok("up", "--no-open", "--port", port)
    alone.ok("restart")
    assert status(alone)["url"].endswith(f":{port}")


def test_a_bad_setting_is_told_with_its_line_and_nothing_is_started(alone: Home) -> None:
    (alone.path / "config.toml").write_text("[server]\nport = 'many'\n")
    for command in (("up", "--no-open"), ("up", "--foreground"), ("restart",), ("config",)):
        done = alone.run(*command)
        assert done.code == 1
        assert "config.toml, line 2" in done.err
    assert alone.run("status").code == 3


def test_down_ends_daemon_keeper_and_what_they_started(alone: Home, lone_agent: Agent) -> None:
    lone_agent.call("execute_command", command="echo $$ > pid; exec sleep 600", wait_seconds=600)
    asked = alone.asked()[0]
    alone.ok("approve", asked["id"])
    alone.becomes(asked["call_id"], "running")
    alone.printed_to("pid")
    known = status(alone)

    done = alone.ok("down")

    assert done.out == "Handrail is down, and everything it started has ended: 1 terminal.\n"
    assert gone(known["pid"])
    assert gone(known["keeper_pid"])
    assert gone(int((alone.workspace / "pid").read_text()))


def test_down_ends_what_a_killed_daemon_left_behind(alone: Home) -> None:
    alone.up()
    known = status(alone)
    os.kill(known["pid"], signal.SIGKILL)
    assert gone(known["pid"])

    alone.ok("down")

    assert gone(known["keeper_pid"])
    assert alone.run("status").code == 3


def test_restart_replaces_the_daemon_and_keeps_keeper_address_terminals_and_approvals(
    alone: Home, lone_agent: Agent
) -> None:
    lone_agent.call("execute_command", command="echo $$ > pid; exec sleep 600", wait_seconds=600)
    running = alone.asked()[0]
    alone.ok("approve", running["id"])
    alone.becomes(running["call_id"], "running")
    alone.printed_to("pid")
    lone_agent.call("write_file", path="new.txt", content="new\n")
    waiting = alone.asked()[0]
    before = status(alone)

    done = alone.ok("restart")

    after = status(alone)
    assert "0 calls interrupted, 1 approval kept, 1 terminal re-adopted." in done.out
    assert after["pid"] != before["pid"]
    assert (after["keeper_pid"], after["url"]) == (before["keeper_pid"], before["url"])
    assert [row["id"] for row in alone.asked()] == [waiting["id"]]
    os.kill(int((alone.workspace / "pid").read_text()), 0)
    alone.becomes(running["call_id"], "running")
    alone.ok("approve", waiting["id"])
    alone.becomes(waiting["call_id"], "done")
    assert (alone.workspace / "new.txt").read_text() == "new\n"


def test_restart_starts_what_was_not_running(alone: Home) -> None:
    done = alone.ok("restart")
    assert "It was not running." in done.err
    assert status(alone)["url"] in done.out


def test_up_in_the_foreground_prints_the_way_in_and_ends_with_ctrl_c(alone: Home) -> None:
    with Screen(alone, "up", "--foreground") as screen:
        screen.shows("/#code=")
        screen.shows(" mcp")
        keeper = status(alone)["keeper_pid"]
        screen.type("\x03")
        assert screen.ends() == 0
    assert gone(keeper)
    assert Path(alone.path / "daemon.json").exists() is False


def test_up_in_the_foreground_prints_no_link_to_a_file(alone: Home) -> None:
    with alone.start("up", "--foreground", stdout=-1, stdin=-3) as daemon:
        assert daemon.stdout is not None
        said: list[str] = []
        while " mcp" not in "".join(said):
            said.append(daemon.stdout.readline())
        daemon.send_signal(signal.SIGINT)
        assert daemon.wait(BOUND) == 0
    assert "#code=" not in "".join(said)
    assert "`handrail open`" in "".join(said)
