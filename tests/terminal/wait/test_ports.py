"""Who listens on a port, as the system tells it."""

import os
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from handrail.terminal.wait.ports import can_list_ports, holder, listening

pytestmark = pytest.mark.skipif(not can_list_ports(), reason="this system has no /proc/net")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_port_is_told_while_something_listens_and_its_holder_by_pid(
    family: socket.AddressFamily, host: str
) -> None:
    with closing(socket.create_server((host, 0), family=family)) as server:
        port = server.getsockname()[1]
        assert holder(listening(port), os.getpid()) == os.getpid()
    assert listening(port) == set()


def test_one_that_only_connects_does_not_listen() -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as server,
        closing(socket.create_connection(server.getsockname())) as client,
    ):
        assert listening(client.getsockname()[1]) == set()


def test_the_holder_is_found_among_descendants_and_nowhere_else() -> None:
    program = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", below], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        found = listening(int(child.stdout.readline()))
        held = holder(found, child.pid)
        assert held not in (None, child.pid)
        assert holder(found, held or 0) == held
        assert holder(found, 1 << 30) is None
        assert child.stdin is not None
        child.stdin.close()
