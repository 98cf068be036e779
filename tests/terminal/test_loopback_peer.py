"""The process at the other end of a loopback connection is found, also if several hold it."""

import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from handrail.keeper import lineage
from handrail.terminal.loopback_peer import find_connection_holders

CLIENT = """
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(peer.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def listener(host: str = "127.0.0.1") -> Generator[socket.socket]:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        server.bind((host, 0))
        server.listen()
        yield server


def test_the_process_that_connected_is_found_until_it_ends() -> None:
    with listener() as server:
        address = server.getsockname()
        argv = [sys.executable, "-c", CLIENT, str(address[1])]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            client = ("127.0.0.1", int(child.stdout.readline()))
            holders = find_connection_holders(client, address)
            assert holders == [lineage.identity(child.pid)]
            child.kill()
        assert find_connection_holders(client, address) == []


def test_every_process_that_holds_the_socket_is_named() -> None:
    with listener() as server, socket.create_connection(server.getsockname()) as client:
        argv = [sys.executable, "-c", "input()"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[client.fileno()]) as child:
            holders = find_connection_holders(client.getsockname(), server.getsockname())
            assert {pid for pid, _ in holders} == {os.getpid(), child.pid}
            child.kill()


@pytest.mark.parametrize("client", [("127.0.0.1", 1), ("::1", 4711)])
def test_a_connection_that_does_not_exist_has_no_process(client: tuple[str, int]) -> None:
    with listener() as server:
        assert find_connection_holders(client, server.getsockname()) == []
