"""The way to the daemon, and what is said when it is not there."""

import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.cli_home import Home
from tests.support.scripted_daemon import ScriptedDaemon

from handrail.cli.client import Link, reach
from handrail.cli.failure import Failure
from handrail.door.connect import GREETINGS
from handrail.paths import Places


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The command line's end of the socket of the hello, and the daemon's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_daemon_that_went_away_is_told_as_such(ends: tuple[socket.socket, socket.socket]) -> None:
    gone = Link(url="http://127.0.0.1:1", pid=1, version="0", bearer="none", recognised=ends[0])
    with pytest.raises(Failure) as failure:
        gone.get("state")
    assert failure.value.code == 3
    assert "`handrail up`" in str(failure.value)


def test_who_listens_on_the_port_of_a_daemon_that_has_ended_is_sent_nothing(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    """A command can end the keeper and the daemon, and take the port that a waiting `handrail chat` knows."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        link = Link(url=url, pid=1, version="0", bearer="secret", recognised=ends[0])
        ends[1].close()
        with pytest.raises(Failure, match="has ended") as failure:
            link.post("threads", "t1", "prompt", body={"text": "", "env": {"ANTHROPIC_API_KEY": "secret"}})
        with other.accept()[0] as peer:
            assert peer.recv(4096) == b""
    assert failure.value.code == 3


def test_a_daemon_that_hangs_up_while_it_ends_is_greeted_again(tmp_path: Path) -> None:
    """After `kill -9`, connections that the daemon has not accepted are reset, and the next one is there soon."""
    places = Places.under(tmp_path)

    def serve() -> None:
        for _ in range(GREETINGS - 1):
            peer.accept().die()
        seat = peer.accept()
        seat.message()
        seat.send({"handrail": 1, "ok": True, "version": "1", "pid": 7, "url": "http://x", "bearer": "b"})

    with ScriptedDaemon(places) as peer, in_thread(serve), reach("read", places=places) as link:
        assert link.pid == 7


def test_a_daemon_that_always_hangs_up_is_given_up(tmp_path: Path) -> None:
    places = Places.under(tmp_path)

    def serve() -> None:
        for _ in range(GREETINGS):
            peer.accept().die()

    with (
        ScriptedDaemon(places) as peer,
        in_thread(serve),
        pytest.raises(Failure) as failure,
        reach("read", places=places),
    ):
        pass
    assert failure.value.code == 3


@contextmanager
def in_thread(work: Callable[[], None]) -> Generator[None]:
    """Do the work beside the block, which ends after it."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.e2e
def test_a_daemon_that_took_the_place_of_ours_is_told_as_a_daemon_that_is_gone(handrail: Home) -> None:
    with reach("read") as link, pytest.raises(Failure, match="replaced") as failure:
        replace(link, bearer="of another time").get("state")
    assert failure.value.code == 3
