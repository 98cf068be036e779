"""A port stays ours from the first daemon to the keeper's end."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.keeper_terminals import running_keeper

from handrail.keeper.requests import Ports


@pytest.fixture
def ports() -> Iterator[Ports]:
    made = Ports()
    yield made
    made.close()


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def number(descriptor: int) -> int:
    with socket.socket(fileno=descriptor) as listener:
        return listener.getsockname()[1]


def test_a_wished_port_that_is_taken_gives_way_to_the_next_one(ports: Ports, taken: int) -> None:
    got = number(ports.open([taken, 99_999]))
    assert got not in (taken, 99_999)
    assert number(ports.open([taken, got])) == got


def test_a_port_that_is_held_is_better_than_any_other(ports: Ports, taken: int) -> None:
    first = number(ports.open([taken]))
    assert number(ports.open([taken])) == first


def test_a_port_stays_taken_when_the_daemon_has_closed_its_own_end(ports: Ports) -> None:
    port = number(ports.open([0]))
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", port))


def test_whoever_connects_while_there_is_no_daemon_is_served_by_the_next(ports: Ports) -> None:
    port = number(ports.open([0]))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as page:
        with socket.socket(fileno=ports.open([port])) as listener, listener.accept()[0] as peer:
            peer.sendall(b"here again")
        assert page.recv(100) == b"here again"


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="needs IPv6 on loopback")


@needs_ipv6
def test_the_same_port_of_ipv6_is_held_too(ports: Ports) -> None:
    four, six = ports.open_both([0])
    port = number(four)
    with socket.socket(fileno=six) as listener:
        assert listener.getsockname()[:2] == ("::1", port)
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("::1", port), family=socket.AF_INET6)
    again = ports.open_both([port])
    assert [number(descriptor) for descriptor in again] == [port, port]


@needs_ipv6
def test_where_ipv6_is_taken_the_port_is_still_good(ports: Ports) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        (four,) = ports.open_both([port])
        assert number(four) == port


def test_a_daemon_from_before_ipv6_gets_one_socket_and_nothing_else_is_held(ports: Ports) -> None:
    """Nobody would accept a page on the second one."""
    port = number(ports.open([0]))
    if has_ipv6():
        socket.create_server(("::1", port), family=socket.AF_INET6).close()


@pytest.mark.anyio
async def test_the_next_daemon_is_given_the_same_port_by_the_keeper(home: Path) -> None:
    async with running_keeper(home, end=False) as first:
        with await first.keeper.listen(0) as listener:
            port = listener.getsockname()[1]
            assert not os.get_inheritable(listener.fileno())
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", port))
    async with running_keeper(home) as second:
        with await second.keeper.listen(port) as listener:
            assert listener.getsockname()[1] == port
