"""The greeting: bounded in length and time, and never a byte more than its line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.scripted_daemon import BOUND

from handrail.door.connect import HelloRefused, say_hello
from handrail.framing import HELLO_MAX


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(BOUND)
        yield ours, theirs


Ends = tuple[socket.socket, socket.socket]


def test_it_says_who_and_where_and_gives_back_the_reply(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(b'{"handrail": 1, "ok": true, "bearer": "b"}\nrest')
    assert say_hello(ours, "person", workspace="/w", door="d")["bearer"] == "b"
    hello = json.loads(theirs.recv(4096))
    assert hello.items() >= {"handrail": 1, "want": "person", "workspace": "/w", "door": "d"}.items()
    assert (hello["pid"], hello["ppid"], hello["cwd"]) == (os.getpid(), os.getppid(), str(Path.cwd()))
    assert ours.recv(100) == b"rest"


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (b'{"handrail": 1, "ok": false, "why": "not from inside an agent."}\n', "not from inside an agent."),
        (b'{"handrail": 1, "ok": false}\n', "it gave no reason."),
        (b'{"handrail": 2, "ok": true}\n', "by version 2 and this program by 1. Run `handrail restart`."),
        (b"HTTP/1.1 400 Bad Request\r\n\n", "not Handrail's"),
        (b"[]\n", "not Handrail's"),
        (b"x" * (HELLO_MAX + 5000), "too long"),
    ],
)
def test_what_is_no_welcome_is_refused_with_the_reason(ends: Ends, reply: bytes, sentence: str) -> None:
    ours, theirs = ends
    theirs.sendall(reply)
    with pytest.raises(HelloRefused) as caught:
        say_hello(ours, "read")
    assert str(caught.value).startswith("The Handrail daemon did not let this program in: ")
    assert sentence in str(caught.value)
    assert not caught.value.hung_up


LISTEN_MARKED = """
import socket, sys
from handrail.door.connect import HelloRefused, dial_path, say_hello
from handrail.keeper.lineage import mark
mark()  # as an agent's door is, and a command that listens in the daemon's place
listener = socket.socket(socket.AF_UNIX); listener.bind(sys.argv[1]); listener.listen(); listener.settimeout(5)
ours = dial_path(sys.argv[1])
theirs = listener.accept()[0]; theirs.setblocking(False)
try:
    say_hello(ours, "mcp", credential=sys.argv[2], within=0.2)
except HelloRefused as refused:
    print(refused)
try:
    print(theirs.recv(4096))
except BlockingIOError:
    print("nothing was sent")
"""


@pytest.mark.parametrize(("credential", "sent"), [("the-agents-credential", False), ("", True)])
def test_an_agents_credential_goes_to_no_listener_that_is_marked_as_the_agent_is(
    tmp_path: Path, credential: str, sent: bool
) -> None:
    """The first check lets it pass, because a daemon that was started from inside Handrail has the same mark."""
    argv = (sys.executable, "-c", LISTEN_MARKED, str(tmp_path / "daemon.sock"), credential)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BOUND, check=True)
    assert ("nothing was sent" in done.stdout) is not sent
    assert ("cannot be recognised as Handrail's" in done.stdout) is not sent


@pytest.mark.parametrize("begun", [b"", b'{"handrail"'])
def test_a_daemon_that_leaves_has_hung_up(ends: Ends, begun: bytes) -> None:
    ours, theirs = ends
    theirs.sendall(begun)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(HelloRefused) as caught:
        say_hello(ours, "mcp")
    assert caught.value.hung_up


def test_a_daemon_that_hangs_is_given_up_in_time(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(b'{"handrail": 1,')
    with pytest.raises(HelloRefused, match=r"has not answered for 0\.05 s"):
        say_hello(ours, "mcp", within=0.05)
