"""The greeting: bounded in length and time, and never a byte more than its line."""

from __future__ import annotations

import json
import os
import socket
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
