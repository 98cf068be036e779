"""A peer that reads slowly gets every message whole, and its descriptors with it."""

import array
import os
import select
import socket
from collections.abc import Iterator

import pytest
from tests.support.keeper_terminals import BOUND

from handrail.framing import LineBuffer
from handrail.keeper.connection import BACKLOG_MAX, Connection
from handrail.keeper.message_framing import FRAME_MAX, encode
from handrail.keeper.protocol import Grown, Started, from_keeper


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    connection = Connection(ours)
    yield connection, theirs
    connection.close()
    theirs.close()


def test_more_than_the_socket_holds_waits_and_arrives_whole(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    sent = [Grown(f"t{'x' * 500}", number) for number in range(3000)]
    for message in sent:
        connection.send(message)
    assert connection.wants_to_send
    assert not connection.has_room
    lines, found = LineBuffer(FRAME_MAX), list[object]()
    while len(found) < len(sent):
        assert select.select([theirs], [], [], BOUND)[0]
        found += map(from_keeper, lines.feed(theirs.recv(65536)))
        connection.flush()
    assert found == sent
    assert connection.has_room
    assert sum(len(encode(message)) for message in sent) > BACKLOG_MAX


def test_descriptors_arrive_with_their_message_and_are_closed_here(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, theirs = pair
    reading, writing = os.pipe()
    connection.send(Started(1, 2, 1), (writing,))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writing)
    line, rights, _, _ = theirs.recvmsg(4096, socket.CMSG_LEN(4))
    assert from_keeper(line) == Started(1, 2, 1)
    passed = array.array("i", rights[0][2])[0]
    os.write(passed, b"through")
    assert os.read(reading, 10) == b"through"
    os.close(passed)
    os.close(reading)


def test_descriptors_for_a_peer_that_is_gone_are_closed(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    theirs.close()
    reading, writing = os.pipe()
    connection.send(Started(1, 2, 1), (writing,))
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert connection.receive() is None


def test_the_messages_of_a_batch_arrive_together_and_in_order(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, theirs = pair
    theirs.setblocking(False)
    reading, writing = os.pipe()
    with connection.batch():
        connection.send(Grown("t", 1))
        connection.send(Grown("t", 2))
        with pytest.raises(BlockingIOError):
            theirs.recv(65536)
        connection.send(Started(1, 2, 1), (reading,))
        connection.send(Grown("t", 3))
    connection.send(Grown("t", 4))
    data, descriptors, _, _ = socket.recv_fds(theirs, 65536, 1)
    while data.count(b"\n") < 5:
        data += theirs.recv(65536)
    messages = [from_keeper(line) for line in data.splitlines()]
    assert messages == [Grown("t", 1), Grown("t", 2), Started(1, 2, 1), Grown("t", 3), Grown("t", 4)]
    for fd in (writing, *descriptors):
        os.close(fd)
