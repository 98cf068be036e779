"""The keeper outlives daemons, is one per home, ends by itself, and takes no orders from inside."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, all_output, running_keeper, until
from tests.support.processes import ProcessMark, is_alive, kill_at_end, parent_of

import handrail
import handrail.keeper
from handrail.keeper import lineage
from handrail.keeper.message_framing import FRAME_MAX, encode
from handrail.keeper.protocol import (
    PROTOCOL,
    Done,
    Exit,
    Grown,
    Hello,
    Notice,
    Refused,
    Remember,
    Welcome,
    from_keeper,
)
from handrail.paths import Places
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.start_keeper import KeeperLauncher, NoKeeperError
from handrail.terminal.terminals import Terminals

ASK = (
    "import socket, sys\n"
    "def ask(want):\n"
    "    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
    '    s.send(b\'{"is": "hello", "protocol": 1, "want": "%s"}\\n\' % want.encode()); return s.makefile().readline()\n'
)


def say(places: Places, line: bytes) -> Welcome | Refused:
    """One line to the keeper from this process, and its answer."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(BOUND)
        peer.connect(str(places.keeper_socket))
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # it may have heard enough, and said so, before the end
            peer.sendall(line)
        answer = from_keeper(peer.makefile("rb").readline().rstrip(b"\n"))
    assert isinstance(answer, Welcome | Refused)
    return answer


async def test_the_next_daemon_adopts_what_runs_and_loses_no_byte(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home, end=False) as scene:
            script = f"echo before; while [ ! -e {home}/go ]; do sleep 0.01; done; echo after; sleep {mark.seconds}"
            terminal = await scene.sh(script, size=(90, 20))
            await until(lambda: terminal.tail.end > 0)
            first = scene.keeper.pid
        (home / "go").touch()
        async with running_keeper(home) as scene:
            assert scene.keeper.pid == first
            adopted = scene.terminals.live[terminal.id]
            same = (adopted.pid, adopted.argv, adopted.cwd, adopted.size, adopted.exit)
            assert same == (terminal.pid, terminal.argv, "/", (90, 20), None)
            assert abs(adopted.created_at - terminal.created_at) < BOUND
            await until(lambda: adopted.tail.read(0)[0] == b"before\r\nafter\r\n")
            with anyio.fail_after(BOUND):
                await adopted.stop(0.0)
            assert mark.pids() == []


async def test_what_ended_while_no_daemon_ran_is_told_to_the_next(home: Path) -> None:
    async with running_keeper(home, end=False) as scene:
        script = f"while [ ! -e {home}/go ]; do sleep 0.01; done; echo done; exit 4"
        terminal = await scene.sh(script)
    (home / "go").touch()
    await until(lambda: not is_alive(terminal.pid))
    async with running_keeper(home, end=False) as scene:
        adopted = scene.terminals.get(terminal.id)
        assert adopted is not None
        with anyio.fail_after(BOUND):
            assert await adopted.wait() == Exit(code=4)
        assert await all_output(adopted) == b"done\r\n"
        assert scene.events == [("ended", terminal.id), ("swept", terminal.id)]
    async with running_keeper(home) as scene:  # nobody acknowledged it: told again
        assert scene.terminals.get(terminal.id) is not None
        scene.terminals.release(terminal.id)  # the keeper forgets it, without a reply
        assert scene.terminals.get(terminal.id) is None
        assert (await scene.keeper.health()).terminals == 0


async def test_a_program_with_pipes_ends_with_its_daemon(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home, end=False) as scene:
            _, pipes = await scene.terminals.open_pipes(["sleep", mark.seconds], "/", ENV)
            await until(lambda: len(mark.pids()) == 1)  # its arguments show a moment after it runs
            for fd in pipes:
                os.close(fd)
        await until(lambda: mark.pids() == [])
        async with running_keeper(home):
            pass


async def test_a_second_daemon_takes_the_place_of_the_first(home: Path) -> None:
    async with running_keeper(home, end=False) as old:
        terminal = await old.open("sleep", "1000")
        async with running_keeper(home) as new:
            assert new.keeper.pid
            await until(lambda: old.events[-1][0] == "lost")
            assert "Another daemon" in old.events[-1][1]
            with pytest.raises(KeeperError, match="Another daemon"):
                await old.sh("echo x")
            assert terminal.id in new.terminals.live


async def test_a_daemon_of_another_version_is_told_so(home: Path) -> None:
    async with running_keeper(home) as scene:
        answer = say(scene.places, encode(Hello(PROTOCOL + 1, "daemon")))
        assert isinstance(answer, Refused)
        assert f"protocol {PROTOCOL} here, {PROTOCOL + 1} there" in answer.why
        assert "handrail down" in answer.why


async def test_a_keeper_of_another_version_is_named_in_the_error(home: Path) -> None:
    places = Places.under(home)
    places.make()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.keeper_socket))
        listener.listen()

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(encode(Welcome(PROTOCOL + 1, os.getpid())))

        with pytest.raises(ExceptionGroup) as caught:
            await _keep_while(home, answer)
    assert caught.group_contains(KeeperError, match=f"{PROTOCOL + 1} there")


async def _keep_while(home: Path, answer: Callable[[], None]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, answer)
        async with running_keeper(home):
            pass


async def test_a_skewed_keeper_can_still_be_shut_down(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home, end=False) as scene:
            await scene.open("sleep", mark.seconds)
            pid = scene.keeper.pid
        answer = say(scene.places, encode(Hello(PROTOCOL + 7, "shutdown", 0.0)))
        assert answer == Welcome(PROTOCOL, pid, answer="ending")
        await until(lambda: not is_alive(pid))
        assert mark.pids() == []


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"[]\n",
        b'{"is": "stop", "id": 1, "terminal": "t", "grace": 0}\n',
        b'{"is": "hello", "protocol": "1", "want": "daemon"}\n',
        b"[" * 100_000 + b"\n",
        b"x" * (FRAME_MAX + 70000),
    ],
)
async def test_a_peer_that_makes_no_sense_is_told_so_and_left(home: Path, line: bytes) -> None:
    async with running_keeper(home) as scene:
        assert isinstance(say(scene.places, line), Refused)
        assert await all_output(await scene.sh("echo alive")) == b"alive\r\n"


async def test_there_is_one_keeper_to_a_home(home: Path) -> None:
    async with running_keeper(home) as scene:
        program = Path(handrail.keeper.__path__[0]) / "__main__.py"
        command = [sys.executable, "-I", "-S", str(program)]
        with anyio.fail_after(BOUND):
            done = await anyio.run_process(command, env=scene.places.environment)
        assert b"already runs" in done.stderr
        assert await all_output(await scene.sh("echo alive")) == b"alive\r\n"


async def test_a_keeper_with_nothing_to_keep_and_no_daemon_ends_by_itself(home: Path) -> None:
    async with running_keeper(home, end=False, idle_seconds=0.1) as scene:
        terminal = await scene.sh(f"while [ ! -e {home}/go ]; do sleep 0.01; done")
        pid = scene.keeper.pid
    began = time.monotonic()
    await until(lambda: time.monotonic() - began > 0.3)
    assert is_alive(pid)  # it has something to keep
    (home / "go").touch()
    await until(lambda: not is_alive(pid))
    assert not is_alive(terminal.pid)
    assert not scene.places.keeper_socket.exists()


async def test_a_shutdown_ends_every_tree(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            for _ in range(5):
                await scene.sh(f"setsid sleep {mark.seconds} & sleep {mark.seconds}")
            pid = scene.keeper.pid
            with anyio.fail_after(BOUND):
                await scene.keeper.shutdown(0.1)
            assert [what for what, _ in scene.events].count("swept") == 5
        await until(lambda: not is_alive(pid))
        assert mark.pids() == []


async def test_a_terminated_keeper_ends_every_tree(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home, end=False) as scene:
            await scene.sh(f"setsid sleep {mark.seconds} & sleep {mark.seconds}")
            pid = scene.keeper.pid
        os.kill(pid, signal.SIGTERM)
        await until(lambda: not is_alive(pid))
        assert mark.pids() == []


async def remember(keeper: Keeper, key: str, value: bytes) -> None:
    await keeper.request(Remember(keeper.number(), key, value), Done)


async def test_a_memo_outlives_daemons_and_is_bounded(home: Path) -> None:
    async with running_keeper(home, end=False) as scene:
        await remember(scene.keeper, "sign-in", b"\x00\xff hash")
        with pytest.raises(KeeperError, match="memo is full"):
            await remember(scene.keeper, "much", bytes(70_000))
    async with running_keeper(home) as scene:
        assert await scene.keeper.recall("sign-in") == b"\x00\xff hash"
        assert await scene.keeper.recall("much") is None
        await remember(scene.keeper, "sign-in", b"")
        assert await scene.keeper.recall("sign-in") is None


async def test_health_tells_of_memory_descriptors_and_lag(home: Path) -> None:
    async with running_keeper(home) as scene:
        await scene.open("sleep", "1000")
        health = await scene.keeper.health()
        assert health.terminals == 1
        assert 4_000_000 < health.rss_bytes < 64_000_000
        assert 5 < health.descriptors < 40
        assert 0 <= health.lag_ms < 5000


@pytest.mark.parametrize("way", ["directly", "after a double fork", "under another leader"])
async def test_a_process_in_a_terminal_gives_the_keeper_no_orders(home: Path, way: str) -> None:
    program = {
        "directly": ASK + "print(ask('daemon'), ask('shutdown'))",
        "after a double fork": ASK + "import os, time\nif os.fork():\n"
        "    while not os.path.exists(sys.argv[2]): time.sleep(0.01)\n    os._exit(0)\n"
        "os.setsid(); os.fork() and os._exit(0)\n"
        "open(sys.argv[2] + '~', 'w').write(ask('daemon') + ask('shutdown')); os.rename(sys.argv[2] + '~', sys.argv[2])",
        "under another leader": ASK + "import subprocess\nprint(ask('daemon'), ask('shutdown'))",
    }[way]
    said = home / "said"
    async with running_keeper(home) as scene:
        arguments = (str(scene.places.keeper_socket), str(said))
        if way == "under another leader":
            inner = [sys.executable, "-c", program, *arguments]
            terminal = await scene.python(
                f"import subprocess; subprocess.run({inner!r}, start_new_session=True)"
            )
        else:
            terminal = await scene.python(program, *arguments)
        printed = (await all_output(terminal)).decode() + (said.read_text() if said.exists() else "")
        assert printed.count("does not take orders") == 2, printed
        assert "welcome" not in printed
        await scene.keeper.health()  # it is still ours


async def test_a_process_stays_marked_when_its_warden_and_keeper_are_gone(home: Path) -> None:
    mark = ProcessMark()
    program = (
        "import os, signal, time\nfor n in (1, 15): signal.signal(n, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n    os.setsid(); os.fork() and os._exit(0)\nprint('ready', flush=True)\n"
        "time.sleep(1000)"
    )
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            terminal = await scene.python(program, mark.seconds)
            await until(lambda: len(mark.pids()) == 2 and terminal.tail.read(0)[0].count(b"ready") == 2)
            warden, keeper = parent_of(terminal.pid), scene.keeper.pid
            # Frozen, so that it cannot end them before the keeper is gone as well.
            os.kill(keeper, signal.SIGSTOP)
            os.kill(warden, signal.SIGKILL)
            await until(lambda: all(parent_of(pid) != warden for pid in mark.pids()))
            os.kill(keeper, signal.SIGKILL)
            await until(lambda: not is_alive(keeper))
            pids = mark.pids()
            assert len(pids) == 2
            assert all(lineage.is_marked(pid, lineage.own_limit()) for pid in pids)
            assert not lineage.is_marked(os.getpid(), lineage.own_limit())


async def test_a_false_keeper_from_inside_a_terminal_is_not_trusted(home: Path) -> None:
    """The keeper is killed and its socket bound by a process that it had started."""
    mark = ProcessMark()
    program = (
        "import os, signal, socket, sys\nfor n in (1, 15): signal.signal(n, signal.SIG_IGN)\n"
        "keeper, warden, path = int(sys.argv[1]), os.getppid(), sys.argv[2]\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(path + '~'); s.listen(); os.rename(path + '~', path)\n"
        "os.kill(keeper, signal.SIGSTOP); os.kill(warden, signal.SIGKILL); os.kill(keeper, signal.SIGKILL)\n"
        "while True: s.accept()"
    )
    with kill_at_end(mark):
        async with running_keeper(home, end=False) as scene:
            arguments = (str(scene.keeper.pid), str(scene.places.keeper_socket), mark.seconds)
            await scene.python(program, *arguments)
            await until(lambda: scene.events[-1:] != [] and scene.events[-1][0] == "lost")
            await until(lambda: bool(mark.pids()))
            with pytest.raises(KeeperError, match="not a trusted keeper"):
                await scene.keeper.health()


async def test_a_keeper_whose_limit_was_lowered_before_it_looked_takes_no_order_from_a_marked_process(
    home: Path,
) -> None:
    """It once measured its peers against its own limit, which another process of the user may lower at its start."""
    places = Places.under(home)
    places.make()
    lower = (
        "import os, resource, sys; limit = resource.prlimit(0, resource.RLIMIT_MSGQUEUE)[1] - 1; "
        "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (limit, limit)); os.execv(sys.argv[1], sys.argv[1:])"
    )
    program = str(Path(lineage.__file__).with_name("__main__.py"))
    options = ("--idle", "30", "--reference", str(lineage.own_reference()))
    argv = (sys.executable, "-c", lower, sys.executable, "-I", "-S", program, *options)
    async with await anyio.open_process(argv, env={**ENV, **places.environment}) as keeper:
        await until(places.keeper_socket.exists)
        ask = (sys.executable, "-c", lower, sys.executable, "-c", f"{ASK}print(ask('daemon'))")
        done = await anyio.run_process((*ask, str(places.keeper_socket)), env=ENV)
        assert b"does not take orders" in done.stdout
        with pytest.raises(NoKeeperError, match="carries the mark"):
            await KeeperLauncher(places, 30.0).connect()
        keeper.kill()


async def test_the_keeper_names_its_daemon_to_anyone(home: Path) -> None:
    """Command lines and doors compare it with the process that listens on the daemon's socket."""
    question = b'{"is": "hello", "protocol": 1, "want": "which_daemon"}\n'
    async with running_keeper(home, end=False) as scene:
        told = say(scene.places, question)
        assert isinstance(told, Welcome)
        assert told.daemon == os.getpid()
    told = say(scene.places, question)
    assert isinstance(told, Welcome)
    assert told.daemon == 0
    async with running_keeper(home):
        pass


async def test_anyone_of_this_user_may_have_the_daemon_started(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the daemon says how it was started, and greets the keeper as a daemon does."""
    package = tmp_path / "handrail"
    package.mkdir()
    (package / "__init__.py").touch()
    facts = tmp_path / "facts"
    (package / "__main__.py").write_text(
        "import json, os, resource, socket, sys, time\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['HANDRAIL_HOME'] + '/keeper.sock')\n"
        f's.send(b\'{{"is": "hello", "protocol": {PROTOCOL}, "want": "daemon"}}\\n\'); said = s.makefile().readline()\n'
        "facts = dict(argv=sys.argv[1:], sid=os.getsid(0), pid=os.getpid(), cwd=os.getcwd(), said=said,\n"
        "             env=dict(os.environ), limit=resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1])\n"
        f"open({str(facts)!r} + '~', 'w').write(json.dumps(facts)); os.rename({str(facts)!r} + '~', {str(facts)!r})\n"
        "s.makefile().read()\n"
    )
    code = Path(handrail.__file__).parents[
        1
    ]  # named, as for a checkout: otherwise the interpreter ignores the variable
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{code}")
    monkeypatch.setenv("A_SECRET", "x")
    async with running_keeper(home, end=False) as scene:
        asked = ASK + "print(ask('start_daemon'))"
        path = str(scene.places.keeper_socket)
        assert b'"already"' in await all_output(await scene.python(asked, path))
        os.environ.pop("A_SECRET")
        script = f'while [ ! -e {home}/go ]; do sleep 0.01; done; exec "$0" "$@"'
        waiting = await scene.open("sh", "-c", script, sys.executable, "-c", asked, path)
    (home / "go").touch()
    await until(facts.exists)
    daemon = json.loads(facts.read_text())
    try:
        assert daemon["argv"] == ["up", "--foreground", "--no-open"]
        assert (daemon["sid"], daemon["cwd"]) == (daemon["pid"], "/")
        assert '"welcome"' in daemon["said"]
        assert not lineage.is_marked(daemon["pid"], lineage.own_limit())
        assert "A_SECRET" not in daemon["env"]
        assert daemon["env"]["HANDRAIL_HOME"] == str(home)
        async with running_keeper(home) as scene:
            adopted = scene.terminals.get(waiting.id)
            assert adopted is not None
            assert b'"started"' in await all_output(adopted)
    finally:
        await until(lambda: not is_alive(daemon["pid"]))


async def test_a_daemon_that_does_not_read_holds_up_nothing_and_is_told_the_latest_size(home: Path) -> None:
    told: list[Grown] = []

    class Recorder:
        """Passes on what it hears, and remembers the growth."""

        def __init__(self, terminals: Terminals) -> None:
            self.adopt, self.lost, self._terminals = terminals.adopt, terminals.lost, terminals

        def hear(self, notice: Notice) -> None:
            if isinstance(notice, Grown):
                told.append(notice)
            self._terminals.hear(notice)

    async with running_keeper(home) as scene:
        scene.keeper.listener = Recorder(scene.terminals)
        script = f"while [ ! -e {home}/end ]; do echo x; sleep 0.001; done"
        terminals = [await scene.sh(script) for _ in range(12)]
        silent_until = time.monotonic() + 2
        with anyio.fail_after(BOUND):
            # Not a wait but the fault itself: a daemon that is busy for two seconds.
            while time.monotonic() < silent_until:
                pass
            assert all(terminal.tail.end > 0 for terminal in terminals)
            (home / "end").touch()
            for terminal in terminals:
                assert await terminal.wait() == Exit(code=0)
        # Told each 20 ms it would have been 1,200 times; the socket holds some hundreds, and memory none.
        assert len(told) < 700
        for terminal in terminals:
            assert (await all_output(terminal)).count(b"x") == terminal.tail.end // 3


async def test_a_full_disk_stops_the_recording_but_not_the_program(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh(
            f"echo kept; while [ ! -e {home}/go ]; do sleep 0.01; done; head -c 1000000 /dev/zero | tr '\\0' x; exit 6",
            cap_bytes=80,
        )
        await until(lambda: terminal.tail.end == 6)
        # A directory in the way of the next segment refuses it as a full disk would.
        for offset in range(7, 40):
            (home / "spool" / terminal.id / f"{offset:020d}.seg").mkdir()
        (home / "go").touch()
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(code=6)
        assert terminal.unrecorded is not None
        assert "could not be written" in terminal.unrecorded


@pytest.mark.parametrize("words", [b"", b'{"is": "hel'])
async def test_a_peer_that_sends_no_hello_is_dropped(home: Path, words: bytes) -> None:
    async with running_keeper(home) as scene:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(BOUND)
            peer.connect(str(Places.under(home).keeper_socket))
            peer.sendall(words)
            assert await anyio.to_thread.run_sync(peer.recv, 100) == b""
        assert (await scene.keeper.health()).descriptors > 0, "the daemon's connection stays"
