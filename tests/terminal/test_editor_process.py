"""The editor's process is the parent of its extension host, and of nothing that runs further below."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.editor_process import BOUND, EditorTree, accept

from handrail.terminal.editor_process import EditorProcess, find_editor_process, is_running


@pytest.fixture
def listener(home: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        listening.listen()
        listening.settimeout(BOUND)
        yield listening


@pytest.fixture
def editor(listener: socket.socket) -> Iterator[EditorTree]:
    with EditorTree(listener.getsockname()) as tree:
        yield tree


def test_the_parent_of_an_extension_host_is_the_editor(listener: socket.socket, editor: EditorTree) -> None:
    editor.connect("host")
    with accept(listener) as connection:
        process = find_editor_process(connection, "parent")
        assert isinstance(process, EditorProcess)
        assert process.pid == editor.process.pid
        assert Path(process.program) == Path(sys.executable).resolve()
        assert process.command.startswith(sys.executable)
        assert is_running(process.identity)
        assert not is_running((process.pid, process.start + 1))


@pytest.mark.parametrize("role", ["below", "twice"])
def test_what_an_extension_host_starts_has_another_parent(
    listener: socket.socket, editor: EditorTree, role: str
) -> None:
    editor.connect(role)
    with accept(listener) as connection:
        process = find_editor_process(connection, "parent")
        assert isinstance(process, str) or process.pid != editor.process.pid


def test_the_peer_itself_is_the_editor_of_an_agent_host(listener: socket.socket) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(listener.getsockname())
        with listener.accept()[0] as connection:
            process = find_editor_process(connection, "peer")
            assert isinstance(process, EditorProcess)
            assert process.pid == os.getpid()


def test_a_shell_is_no_editor(listener: socket.socket) -> None:
    program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'x'); sys.stdin.read()"
    line = f'{sys.executable} -c "$1" "$2"; true'
    argv = ["sh", "-c", line, "sh", program, listener.getsockname()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as shell, accept(listener) as connection:
        process = find_editor_process(connection, "parent")
        assert isinstance(process, str)
        assert f"Process {shell.pid} (sh)" in process
        shell.communicate()


def test_a_process_that_has_exited_is_no_editor(listener: socket.socket) -> None:
    program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'x')"
    argv = [sys.executable, "-c", program, listener.getsockname()]
    with subprocess.Popen(argv) as gone, accept(listener) as connection:
        gone.wait(BOUND)
        assert isinstance(find_editor_process(connection, "parent"), str)
