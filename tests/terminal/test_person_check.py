"""Who counts as a person: not what descends from a program that launched a door."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.terminal.person_check import NO_PERSON, DoorLaunchers, is_other_user

CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()"
THROUGH_A_PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]], stdin=sys.stdin)"
BOUND = 20.0


@pytest.fixture
def listener(home: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        listening.listen()
        listening.settimeout(BOUND)
        yield listening


def connect(listener: socket.socket, *program: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A process that connects and waits; it ends when its standard input closes."""
    path = listener.getsockname()
    process = subprocess.Popen([sys.executable, "-c", program[0], path, *program[1:]], stdin=subprocess.PIPE)
    connection, _ = listener.accept()
    return process, connection


def test_a_process_below_the_launcher_of_a_door_is_no_person(listener: socket.socket) -> None:
    lineage = DoorLaunchers()
    agent, door = connect(listener, THROUGH_A_PARENT, CONNECT)
    with agent, door:
        assert lineage.refusal(door) is None
        lineage.launched_door(door)
        assert lineage.refusal(door) == NO_PERSON


def test_the_same_user_is_no_stranger(listener: socket.socket) -> None:
    process, connection = connect(listener, CONNECT)
    with process, connection:
        assert not is_other_user(connection)
