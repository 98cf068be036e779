"""Who counts as a person: not what descends from a program that launched a door."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.pty_session import PtySession

from handrail.keeper import lineage
from handrail.terminal.person_check import NO_PERSON, DoorLaunchers, find_launchers, is_other_user

CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()"
THROUGH_A_PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]], stdin=sys.stdin)"
THROUGH_A_SHELL = f"import os, shlex, sys; os.system(shlex.join([sys.executable, '-c', {CONNECT!r}, sys.argv[1]]) + '; true')"
BOUND = 20.0


@pytest.fixture
def listener(home: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        listening.listen()
        listening.settimeout(BOUND)
        yield listening


def connect(listener: socket.socket, *program: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A process in its own session that connects and waits; it ends when its standard input closes."""
    argv = [sys.executable, "-c", program[0], listener.getsockname(), *program[1:]]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    connection, _ = listener.accept()
    return process, connection


def pid_of(connection: socket.socket) -> int:
    peer = lineage.Peer.of(connection)
    peer.close()
    return peer.pid


def test_a_process_below_the_launcher_of_a_door_is_no_person(listener: socket.socket) -> None:
    launchers = DoorLaunchers()
    agent, door = connect(listener, THROUGH_A_PARENT, CONNECT)
    with agent, door:
        assert launchers.refusal(door) is None
        launchers.launched_door(door)
        assert launchers.refusal(door) == NO_PERSON
        process, other = connect(listener, CONNECT)
        with process, other:
            assert launchers.refusal(other) is None


def test_every_process_between_a_door_and_the_leader_of_its_session_is_a_launcher(
    listener: socket.socket,
) -> None:
    """As with `npx` and `sh -c`, where the agent is not the door's parent."""
    agent, door = connect(listener, THROUGH_A_PARENT, THROUGH_A_SHELL)
    with agent, door:
        found = [pid for pid, _ in find_launchers(pid_of(door))]
        assert found[-1] == agent.pid
        assert len(found) >= 2
        assert os.getpid() not in found


def test_a_door_that_was_adopted_makes_no_agent_of_the_process_that_adopted_it(
    listener: socket.socket,
) -> None:
    """As the session manager adopts a door whose client has exited. Its other children are the person's."""
    adopter = textwrap.dedent(
        """
        import ctypes, os, subprocess, sys
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        launcher = "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]])"
        argv = [sys.executable, "-c", launcher, sys.argv[2], sys.argv[1]]
        subprocess.Popen(argv, start_new_session=True, stdin=sys.stdin).wait()
        print("adopted", flush=True)
        sys.stdin.read()
        """
    )
    launchers = DoorLaunchers()
    path = listener.getsockname()
    argv = [sys.executable, "-c", adopter, path, CONNECT]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        door, _ = listener.accept()
        assert process.stdout is not None
        process.stdout.readline()
        with door:
            assert lineage.parent(pid_of(door)) == process.pid
            launchers.launched_door(door)
            assert not launchers.is_agent(process.pid)
        process.kill()


def test_a_persons_shell_is_no_launcher_but_the_agent_that_runs_in_it_is(
    listener: socket.socket, home: Path
) -> None:
    (home / "agent.py").write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {CONNECT!r}, sys.argv[1]])\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PS1": "$ "}
    with PtySession(["bash", "--norc", "--noprofile", "-i"], environment) as shell:
        shell.type(f"{sys.executable} {home}/agent.py {listener.getsockname()}\n".encode())
        door, _ = listener.accept()
        with door:
            found = [pid for pid, _ in find_launchers(pid_of(door))]
            assert found == [lineage.parent(pid_of(door))]
            launchers = DoorLaunchers()
            launchers.launched_door(door)
            assert launchers.refusal(door) == NO_PERSON
            assert not launchers.is_agent(shell.process.pid)


def test_terminals_below_a_launcher_without_a_terminal_are_the_persons(listener: socket.socket) -> None:
    """As in an editor, which runs agents and the person's terminals."""
    editor = "import os, subprocess, sys, time\n" + textwrap.dedent(
        """
        door = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], stdin=subprocess.PIPE)
        sys.stdin.readline()
        pid, _ = os.forkpty()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1]])
        sys.stdin.readline()
        subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]])
        """
    )
    launchers = DoorLaunchers()
    process, door = connect(listener, editor, CONNECT)
    with process, door:
        assert process.stdin is not None
        launchers.launched_door(door)
        for refusal in (None, NO_PERSON):  # in a terminal of the editor; a process of the editor itself
            process.stdin.write(b"\n")
            process.stdin.flush()
            peer, _ = listener.accept()
            with peer:
                assert launchers.refusal(peer) == refusal
        process.kill()


def test_launchers_are_known_to_the_next_daemon_while_they_live(listener: socket.socket) -> None:
    kept: list[bytes] = []
    launchers = DoorLaunchers()
    launchers.keep = kept.append
    agent, door = connect(listener, THROUGH_A_PARENT, CONNECT)
    with agent, door:
        launchers.launched_door(door)
        launchers.launched_door(door)
        assert len(kept) == 1
        assert DoorLaunchers(kept[-1]).refusal(door) == NO_PERSON
    assert not DoorLaunchers(kept[-1]).is_agent(agent.pid)


def test_only_the_process_that_started_a_door_itself_has_it_as_its_server(listener: socket.socket) -> None:
    kept: list[bytes] = []
    launchers = DoorLaunchers()
    launchers.keep = kept.append
    agent, door = connect(listener, THROUGH_A_PARENT, CONNECT)
    with agent, door:
        launchers.launched_server(door)
        launchers.launched_server(door)
        assert len(kept) == 1
        next_daemon = DoorLaunchers(kept[-1])
        client, own = lineage.identity(agent.pid), lineage.identity(os.getpid())
        assert client is not None
        assert own is not None
        assert next_daemon.has_server(client)
        assert not next_daemon.has_server(own), "it is above the client"
    assert not DoorLaunchers(kept[-1]).has_server(client)


def test_the_launchers_of_an_earlier_version_are_known(listener: socket.socket) -> None:
    agent, door = connect(listener, THROUGH_A_PARENT, CONNECT)
    with agent, door:
        identity = lineage.identity(agent.pid)
        assert DoorLaunchers(json.dumps([identity]).encode()).is_agent(pid_of(door))


@pytest.mark.parametrize("kept", [b"", b"[]", b"{}", b'{"x": 1}', b"[[1]]", b"null", b"[1, 2]", b"\xff"])
def test_what_no_daemon_of_ours_has_kept_is_ignored(kept: bytes) -> None:
    assert not DoorLaunchers(kept).is_agent(os.getpid())


def test_a_marked_process_that_no_keeper_started_is_told_of_its_mark(listener: socket.socket) -> None:
    lower = (
        "import resource; l = resource.prlimit(0, resource.RLIMIT_MSGQUEUE)[1] - 1; "
        "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (l, l)); "
    )
    process, connection = connect(listener, lower + CONNECT)
    with process, connection:
        told = DoorLaunchers(keeper_pid=lambda: 1 << 22).refusal(connection)
        assert told is not None
        assert f"Process {process.pid}" in told
        assert "prlimit" in told
        assert DoorLaunchers(keeper_pid=os.getpid).refusal(connection) == NO_PERSON  # below its keeper


def test_the_same_user_is_no_stranger(listener: socket.socket) -> None:
    process, connection = connect(listener, CONNECT)
    with process, connection:
        assert not is_other_user(connection)
