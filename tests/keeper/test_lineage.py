"""Who is marked, who descends from whom, and who is at the other end of a socket."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import handrail.keeper.lineage
from handrail.keeper.lineage import (
    KERNEL_DEFAULT,
    NO_REFERENCE,
    Peer,
    descends_from,
    explain_mark,
    hard_limit,
    identity,
    is_marked,
    own_limit,
    reference,
    stated_limit,
)

SRC = str(Path(handrail.keeper.lineage.__file__).parents[2])
DOUBLE_FORK = (
    "import os, sys, time\n"
    "from handrail.keeper.lineage import mark\n"
    "mark()\n"
    "if os.fork(): os.wait(); time.sleep(1000)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "print(os.getpid(), flush=True); time.sleep(1000)\n"
)


LOWER = (
    "import resource\nlimit = resource.prlimit(0, resource.RLIMIT_MSGQUEUE)[1] - 1\n"
    "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (limit, limit))\n"
)


@contextmanager
def running(program: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A Python program, and the first line it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SRC},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_mark_is_inherited_through_a_double_fork_and_a_new_session() -> None:
    with running(DOUBLE_FORK) as (process, line):
        orphan = int(line)
        try:
            assert is_marked(orphan, own_limit())
            assert is_marked(process.pid, own_limit())
            assert not is_marked(os.getpid(), own_limit())
        finally:
            os.kill(orphan, 9)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_an_ordinary_user_cannot_take_the_mark_off() -> None:
    program = (
        "import os, resource\nfrom handrail.keeper.lineage import mark\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "before = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]; mark()\n"
        "try: resource.setrlimit(resource.RLIMIT_MSGQUEUE, (before, before)); print('raised')\n"
        "except ValueError as error: print(before - resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1], error)\ninput()"
    )
    with running(program) as (_, line):
        assert line.startswith("1 ")


def test_a_mark_is_measured_against_the_kernels_default_or_a_first_process_of_another_user() -> None:
    first = hard_limit(1)
    assert first is not None
    assert reference() in (KERNEL_DEFAULT, min(first, KERNEL_DEFAULT))
    assert is_marked(os.getpid()) == (own_limit() < reference())


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
AS_FIRST_PROCESS = ("unshare", "--pid", "--fork", "--mount-proc", "setpriv", "--reuid=65534", "--regid=65534")


def run_as_first_process(program: str) -> list[str]:
    """What a program prints that is pid 1 of its own PID namespace, as an ordinary user."""
    argv = (*AS_FIRST_PROCESS, "--clear-groups", sys.executable, "-c", program)
    done = subprocess.run(
        argv, env={"PYTHONPATH": SRC}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_root
def test_no_process_moves_the_reference_by_the_limit_of_a_first_process_that_is_its_users() -> None:
    """The mark was measured against pid 1's limit at the moment of the check, and the same user may lower that."""
    attack = (
        "import os, resource\nfrom handrail.keeper.lineage import is_marked, mark, own_limit\nassert os.getpid() == 1\n"
        "if os.fork(): os.wait(); os._exit(0)\n"
        "mark(); lowered = own_limit()\nresource.prlimit(1, resource.RLIMIT_MSGQUEUE, (lowered, lowered))\n"
        "print(resource.prlimit(1, resource.RLIMIT_MSGQUEUE)[1] == lowered, is_marked(os.getpid()))"
    )
    assert run_as_first_process(attack) == ["True True"]


@needs_root
def test_where_the_first_process_is_the_users_nobody_is_known_and_the_reason_names_the_way_out() -> None:
    program = "from handrail.keeper.lineage import explain_no_reference as why; print(why())"
    assert run_as_first_process(program) == [NO_REFERENCE]
    assert "/etc/handrail" in NO_REFERENCE


@needs_root
def test_the_limit_that_root_states_is_taken_only_from_a_file_that_root_alone_can_write() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hr-", dir="/run"))
    try:
        folder.chmod(0o755)
        file = folder / "limit"
        assert stated_limit(str(file)) is None
        file.write_text("5000\n")
        assert stated_limit(str(file)) == 5000
        file.write_text("")
        assert stated_limit(str(file)) == KERNEL_DEFAULT
        (folder / "link").symlink_to(file)
        assert stated_limit(str(folder / "link")) is None
        folder.chmod(0o777)
        assert stated_limit(str(file)) is None
        folder.chmod(0o755)
        os.chown(file, 65534, 65534)
        assert stated_limit(str(file)) is None
    finally:
        shutil.rmtree(folder)


def test_whose_shell_was_marked_is_told_which_process_and_how_it_is_mended() -> None:
    with running(f"import os\n{LOWER}print(os.getpid(), flush=True); input()") as (process, _):
        told = explain_mark(process.pid)
        assert f"Process {process.pid} (python" in told
        for words in ("prlimit", "new terminal", f"--msgqueue={reference()}:{reference()} --pid PID"):
            assert words in told
        assert not is_marked(os.getpid())


def test_the_limit_of_a_process_that_hides_its_memory_is_known() -> None:
    program = "from handrail.hardening import hide_memory\nhide_memory(); print(flush=True); input()"
    with running(program) as (process, _):
        assert hard_limit(process.pid) == own_limit()
        assert not is_marked(process.pid)


def test_a_listener_that_left_its_socket_to_another_and_is_gone_is_not_trusted(tmp_path: Path) -> None:
    path = f"/tmp/hr-{os.getpid()}.sock"
    program = (
        f"import os, socket, time\ns = socket.socket(socket.AF_UNIX); s.bind({path!r}); s.listen()\n"
        "child = os.fork()\nif child: print(child, flush=True); os._exit(0)\ntime.sleep(1000)\n"
    )
    try:
        with running(program) as (process, line), socket.socket(socket.AF_UNIX) as sock:
            process.wait(20)
            sock.connect(path)
            peer = Peer.of(sock)
            assert not peer.is_alive()
            assert not peer.is_trusted(set(), own_limit())
            peer.close()
            os.kill(int(line), 9)
    finally:
        Path(path).unlink()


def test_a_process_that_is_gone_counts_as_marked() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert is_marked(process.pid)
    assert descends_from(process.pid, {(1, 1)})


def test_a_process_descends_from_itself_and_from_all_above_it() -> None:
    with running("import os; print(os.getpid()); input()") as (process, _):
        me, child, first = identity(os.getpid()), identity(process.pid), identity(1)
        assert me is not None
        assert child is not None
        assert first is not None
        assert descends_from(process.pid, {me})
        assert descends_from(process.pid, {child})
        assert descends_from(process.pid, {first})
        assert not descends_from(os.getpid(), {child})
        assert not descends_from(process.pid, set())


def test_a_later_process_of_the_same_pid_is_another() -> None:
    me = identity(os.getpid())
    assert me is not None
    assert not descends_from(os.getpid(), {(me[0], me[1] - 1)})


def test_a_name_full_of_parentheses_does_not_hide_a_parent() -> None:
    program = "open('/proc/self/comm', 'w').write(') R 1 1'); print(); input()"
    with running(program) as (process, _):
        me = identity(os.getpid())
        assert me is not None
        assert descends_from(process.pid, {me})


def test_a_peer_is_who_connected_and_is_trusted_while_it_lives() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = Peer.of(ours)
        assert (peer.pid, peer.uid) == (os.getpid(), os.getuid())
        assert peer.is_trusted(set(), own_limit())
        me = identity(os.getpid())
        assert me is not None
        assert not peer.is_trusted({me}, own_limit())
        assert not peer.is_trusted(set(), own_limit() + 1)
        peer.close()


def test_a_peer_that_left_its_socket_to_another_and_is_gone_is_not_trusted(tmp_path: Path) -> None:
    path = f"/tmp/hr-{os.getpid()}.sock"
    program = (
        "import os, socket, time\n"
        f"s = socket.socket(socket.AF_UNIX); s.connect({path!r})\n"
        "child = os.fork()\n"
        "if child: print(child, flush=True); input(); os._exit(0)\n"
        "time.sleep(1000)\n"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        Path(path).chmod(0o600)
        try:
            with running(program) as (process, line):
                connection, _ = listener.accept()
                with connection:
                    peer = Peer.of(connection)
                    assert peer.is_trusted(set(), own_limit())
                    assert process.stdin is not None
                    process.stdin.write("\n")
                    process.stdin.flush()
                    process.wait(20)
                    assert not peer.is_trusted(set(), own_limit())
                    peer.close()
                os.kill(int(line), 9)
        finally:
            Path(path).unlink()
