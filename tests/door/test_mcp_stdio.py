"""The door as its client sees it: a real process, with a scripted daemon behind it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.scripted_daemon import BOUND, SRC, DoorClient, ScriptedDaemon, encode_line, request, result

from handrail.paths import Places

INITIALIZE = (
    b'{"jsonrpc": "2.0",  "id": 0, "method": "initialize", "params": {"clientInfo": {"name": "t"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def test_lines_pass_as_they_are_both_ways(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        for line in (INITIALIZE, b"not json at all\n", b"\xff\x00\n", b"\n", b'  {"id" : 1}  \r\n'):
            client.send(line)
            assert seat.line() == line
            seat.send(line)
            assert client.line() == line


def test_the_hello_says_who_wants_what_and_where(peer: ScriptedDaemon, tmp_path: Path) -> None:
    with DoorClient(cwd=tmp_path) as client:
        hello = peer.seat().hello
        assert hello["handrail"] == 1
        assert hello["want"] == "mcp"
        assert hello["pid"] == client.door.pid
        assert hello["ppid"] == os.getpid()
        assert hello["cwd"] == str(tmp_path)
        assert hello["workspace"] is None
        assert hello["door"]


@pytest.mark.parametrize("how", ["--workspace .", "--workspace=.", "HANDRAIL_WORKSPACE"])
def test_a_named_workspace_is_sent_as_an_absolute_path(
    peer: ScriptedDaemon, tmp_path: Path, how: str
) -> None:
    arguments = how.split() if how.startswith("-") else []
    environ = {} if arguments else {how: "."}
    with DoorClient(*arguments, cwd=tmp_path, **environ):
        assert peer.seat().hello["workspace"] == str(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--workspace", "nowhere"], b"nowhere is not a directory"),
        (["--workspice", "x"], b"--workspice x is not understood"),
    ],
)
def test_a_wrong_command_line_is_a_sentence_and_status_2(
    home: Path, arguments: list[str], sentence: bytes
) -> None:
    with DoorClient(*arguments) as client:
        assert client.wait() == 2
        assert client.door.stderr
        assert sentence in client.door.stderr.read()


def test_input_that_ends_is_answered_first_and_then_the_door_exits_0(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        client.send(request(1), request("two"))
        client.end_input()
        seat = peer.seat()
        assert [seat.message()["id"], seat.message()["id"], seat.line()] == [1, "two", b""]
        seat.send(result("two"), result(1))
        assert [client.message()["id"], client.message()["id"]] == ["two", 1]
        assert client.wait() == 0


def test_a_last_line_without_newline_is_passed_on(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(b'{"jsonrpc":"2.0","method":"x"}')
        client.end_input()
        assert seat.line() == b'{"jsonrpc":"2.0","method":"x"}'
        assert client.wait() == 0


def test_input_that_ends_does_not_wait_for_ever_for_a_silent_daemon(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1))
        client.end_input()
        assert seat.message()["id"] == 1
        assert client.wait() == 0


def test_a_client_that_stops_reading_for_good_ends_the_door(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        peer.seat()
        client.stop_reading()
        assert client.wait() == 0


def test_stdio_made_of_sockets_works_as_pipes_do(peer: ScriptedDaemon) -> None:
    """Node launches its children so."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            door = subprocess.Popen(
                [sys.executable, "-m", "handrail", "mcp"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env={**os.environ, "PYTHONPATH": str(SRC)},
            )
        ours.settimeout(BOUND)
        ours.sendall(encode_line(request(1)))
        seat = peer.seat()
        assert seat.message()["id"] == 1
        seat.send(result(1))
        assert ours.recv(1000) == encode_line(result(1))
        ours.sendall(encode_line(request(2)))
        assert seat.message()["id"] == 2
    assert door.wait(BOUND) == 0
    assert seat.line() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_door_at_once_and_its_connection_with_it(
    peer: ScriptedDaemon, number: signal.Signals
) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1))
        seat.message()
        client.door.send_signal(number)
        assert client.wait() == -number
        assert seat.line() == b""
        assert client.rest() == b""


def test_a_daemon_that_cannot_be_had_is_a_sentence_for_every_request(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the home should be")
    with DoorClient(HANDRAIL_HOME=str(blocked)) as client:
        client.send(INITIALIZE, request("b", "tools/list"), request(3))
        answers = [client.message() for _ in range(3)]
        assert [answer["id"] for answer in answers] == [0, "b", 3]
        for answer in answers:
            assert answer["error"]["code"] == -32000
            assert "The Handrail daemon is not running: it cannot be started" in answer["error"]["message"]
            assert "`handrail doctor`" in answer["error"]["message"]
            assert "was not run" in answer["error"]["message"]


def test_a_client_that_leaves_at_once_starts_no_daemon(places: Places) -> None:
    with DoorClient() as client:
        client.end_input()
        assert client.wait() == 0
        assert client.rest() == b""
    assert not (places.logs / "daemon.out").exists()


def test_a_door_imports_nothing_slow() -> None:
    code = "import sys; sys.argv = ['handrail', 'mcp', '-h']; import handrail.__main__ as m; m.main(); print(*sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SRC)},
        capture_output=True,
        check=True,
        timeout=BOUND,
    ).stdout
    assert b"handrail mcp --workspace DIR" in out
    slow = {"asyncio", "typing", "subprocess", "argparse", "logging", "threading", "random", "handrail.cli"}
    assert slow & set(out.decode().split()) == set()


def test_a_daemon_that_refuses_is_quoted_to_the_client(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.accept()
        seat.message()
        seat.send({"handrail": 1, "ok": False, "why": "the moon is full."})
        client.send(request(1))
        assert "let this program in: the moon is full." in client.message()["error"]["message"]


def test_a_daemon_that_hangs_up_while_it_ends_is_asked_again(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        peer.accept().die()
        client.send(request(1))
        assert peer.seat().message()["id"] == 1


def test_a_home_too_deep_for_a_socket_is_found_all_the_same(tmp_path: Path) -> None:
    deep = Places.under(tmp_path / ("d" * 120))
    with ScriptedDaemon(deep) as peer, DoorClient(HANDRAIL_HOME=str(deep.state)) as client:
        client.send(request(1))
        assert peer.seat().message()["id"] == 1
    deep.daemon_socket.unlink()
    deep.daemon_socket.parent.rmdir()
