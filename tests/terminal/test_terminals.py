"""Terminals with real programs: starting, typing, sizes, signals, exits."""

import hashlib
import os
import signal
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from tests.support.keeper_terminals import BOUND, ENV, all_output, running_keeper, until
from tests.support.processes import ProcessMark, kill_at_end

from handrail.keeper.protocol import NOT_READING, Exit
from handrail.terminal import terminals
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.tail import Tail


async def test_a_program_prints_into_its_tail_and_its_exit_is_known(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("echo hello; pwd; exit 3")
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(code=3)
        assert await all_output(terminal) == b"hello\r\n/\r\n"
        assert scene.events == [("opened", terminal.id), ("ended", terminal.id), ("swept", terminal.id)]


async def test_all_that_was_printed_is_there_when_the_exit_is_known(home: Path) -> None:
    async with running_keeper(home) as scene:
        for _ in range(30):
            terminal = await scene.sh("head -c 30000 /dev/zero | tr '\\0' x")
            with anyio.fail_after(BOUND):
                await terminal.wait()
            assert terminal.tail.end == 30000


@pytest.mark.parametrize(
    ("argv", "cwd", "sentence"),
    [
        (["no-such-program"], "/", "no program no-such-program on the PATH"),
        (["/no/such"], "/", "no program /no/such"),
        (["/etc/passwd"], "/", "may not be executed: permission denied"),
        (["sh"], "/no/such/place", "directory /no/such/place does not exist"),
        (["sh"], "/etc/passwd", "/etc/passwd is not a directory"),
        ([], "/", "needs a command"),
    ],
)
async def test_what_cannot_run_says_why(home: Path, argv: list[str], cwd: str, sentence: str) -> None:
    async with running_keeper(home) as scene:
        with pytest.raises(KeeperError, match=sentence):
            await scene.terminals.open(argv, cwd, ENV)
        assert not scene.terminals.live
        assert scene.events == []


async def test_a_script_without_a_first_line_says_what_it_lacks(home: Path) -> None:
    script = home / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    async with running_keeper(home) as scene:
        with pytest.raises(KeeperError, match="lacks a first line"):
            await scene.open(str(script))


async def test_a_program_starts_in_the_very_directory_that_was_meant_or_not_at_all(home: Path) -> None:
    meant, other = home / "meant", home / "other"
    meant.mkdir()
    other.mkdir()
    found = meant.stat()
    identity = (found.st_dev, found.st_ino)
    async with running_keeper(home) as scene:
        terminal = await scene.terminals.open(["pwd"], str(meant), ENV, cwd_id=identity)
        assert await all_output(terminal) == f"{meant}\r\n".encode()
        meant.rename(home / "moved")
        for swap in (lambda: meant.symlink_to(other), lambda: (meant.unlink(), meant.mkdir())):
            swap()
            with pytest.raises(KeeperError, match="no longer the directory that was checked"):
                await scene.terminals.open(["touch", "here"], str(meant), ENV, cwd_id=identity)
        assert [path.name for folder in (meant, other) for path in folder.iterdir()] == []


async def test_a_leader_ended_by_a_signal_is_reported_by_its_name(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("sleep", "1000")
        await terminal.signal(signal.SIGUSR1)
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(signal="SIGUSR1")


async def test_what_is_typed_reaches_the_program(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("read line; echo got:$line")
        await terminal.write(b"something\n")
        assert b"got:something" in await all_output(terminal)


async def test_a_program_that_does_not_read_gets_no_more_than_the_queue_holds(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("stty raw -echo; echo ready; sleep 1000")
        await until(lambda: terminal.tail.end > 0)
        await terminal.write(b"x" * 200_000)
        with pytest.raises(KeeperError, match="is not reading") as refused:
            await terminal.write(b"x" * 200_000)
        assert refused.value.code == NOT_READING


async def test_a_queue_of_input_is_written_as_the_program_reads(home: Path) -> None:
    typed = os.urandom(200_000).replace(b"\x00", b"z")
    async with running_keeper(home) as scene:
        script = f"stty raw -echo; echo ready; head -c {len(typed)} | sha256sum"
        terminal = await scene.sh(script)
        await until(lambda: terminal.tail.end > 0)
        await terminal.write(typed)
        assert hashlib.sha256(typed).hexdigest().encode() in await all_output(terminal)


async def test_a_terminal_has_the_size_asked_for_and_tells_its_program_of_another(home: Path) -> None:
    async with running_keeper(home) as scene:
        script = 'trap "stty size; exit" WINCH; stty size; while :; do sleep 0.01; done'
        terminal = await scene.sh(script, size=(100, 30))
        await until(lambda: b"30 100" in terminal.tail.read(0)[0])
        await terminal.resize(120, 40)
        assert b"40 120" in await all_output(terminal)
        assert terminal.size == (120, 40)


async def test_an_impossible_size_is_refused(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("sleep", "1000")
        with pytest.raises(KeeperError, match="cannot have 0 columns"):
            await terminal.resize(0, 10)


async def test_an_ended_terminal_takes_no_input(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("true")
        await terminal.wait()
        with pytest.raises(KeeperError, match="has ended"):
            await terminal.write(b"x")


async def test_an_id_is_used_once(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("echo x", id="mine")
        await all_output(terminal)
        await scene.terminals.forget("mine")
        with pytest.raises(KeeperError, match="mine already exists"):
            await scene.sh("echo y", id="mine")
        with pytest.raises(KeeperError, match="an id of letters"):
            await scene.sh("echo y", id="../elsewhere")


async def test_a_storm_followed_live_equals_what_the_producer_wrote(home: Path) -> None:
    program = (
        "import hashlib, os, random, sys\n"
        "os.system('stty -opost')\n"
        "seen = hashlib.sha256()\n"
        "for _ in range(1200):\n"
        "    data = random.randbytes(random.randrange(1, 40000)); seen.update(data)\n"
        "    while data: data = data[os.write(1, data):]\n"
        "open(sys.argv[1], 'w').write(seen.hexdigest())\n"
    )
    written = home / "digest"
    followed = hashlib.sha256()

    async def follow(data: bytes, _offset: int) -> None:
        followed.update(data)
        await anyio.lowlevel.checkpoint()

    async with running_keeper(home) as scene:
        terminal = await scene.python(program, str(written))
        with anyio.fail_after(BOUND):
            await terminal.tail.follow(0, follow)
    assert followed.hexdigest() == written.read_text()


async def test_beyond_the_cap_the_oldest_is_dropped_and_offsets_stay(home: Path) -> None:
    async with running_keeper(home) as scene:
        script = "stty -opost; i=0; while [ $i -lt 20000 ]; do printf '%07d\\n' $i; i=$((i+1)); done"
        terminal = await scene.sh(script, cap_bytes=65536)
        with anyio.fail_after(BOUND):
            await terminal.wait()
        tail = terminal.tail
        assert tail.end == 160_000
        assert 0 < tail.end - tail.first <= 65536
        data, following = tail.read(0)
        assert following - len(data) == tail.first
        at = tail.first + (-tail.first % 8)
        assert tail.read(at, 8)[0] == b"%07d\n" % (at // 8)


async def test_an_ended_terminal_is_read_from_disk_when_the_keeper_is_gone(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("echo kept")
        await terminal.wait()
    assert Tail(home / "spool" / terminal.id, closed=True).read(0) == (b"kept\r\n", 6)


async def test_nothing_printed_leaves_nothing_on_disk(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("true")
        await terminal.wait()
        assert terminal.tail.read(0) == (b"", 0)
        assert not (home / "spool" / terminal.id).exists()


async def test_a_forgotten_terminal_keeps_its_output_unless_that_is_deleted(home: Path) -> None:
    async with running_keeper(home) as scene:
        kept, deleted = await scene.sh("echo a"), await scene.sh("echo b")
        for terminal in (kept, deleted):
            await all_output(terminal)
            await scene.terminals.forget(terminal.id, delete=terminal is deleted)
            assert scene.terminals.get(terminal.id) is None
        assert scene.terminals.tail(kept.id).read(0)[0] == b"a\r\n"
        assert scene.terminals.tail(deleted.id).read(0)[0] == b""


async def test_a_running_terminal_is_not_forgotten(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("sleep", "1000")
        with pytest.raises(KeeperError, match="has not ended"):
            await scene.terminals.forget(terminal.id)


async def test_pipes_come_to_the_caller_and_carry_bytes_as_they_are(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal, (stdin, stdout, stderr) = await scene.terminals.open_pipes(
            ["sh", "-c", "echo oops >&2; exec cat"], "/", ENV
        )
        os.write(stdin, b"raw\x00\nbytes")
        os.close(stdin)
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(code=0)
        assert os.read(stdout, 100) == b"raw\x00\nbytes"
        assert os.read(stderr, 100) == b"oops\n"
        os.close(stdout)
        os.close(stderr)


async def test_an_opening_given_up_leaves_nothing_running(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            for _ in range(20):
                with anyio.move_on_after(0):
                    await scene.open("sleep", mark.seconds)
            # Requests are answered in order: by now the keeper has seen each start and its stop.
            await scene.keeper.health()
            await until(lambda: not mark.pids())
            assert not scene.terminals.live


async def test_the_callers_environment_and_only_it_reaches_the_program(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.terminals.open(["/usr/bin/env"], "/tmp", {"ONLY": "this"})
        assert sorted((await all_output(terminal)).split()) == [b"ONLY=this", b"PWD=/tmp"]


async def test_a_program_may_close_its_terminal_and_open_it_again(home: Path) -> None:
    async with running_keeper(home) as scene:
        script = "exec </dev/null >/dev/null 2>&1; sleep 0.05; echo again >/dev/tty; sleep 1000"
        terminal = await scene.sh(script)
        await until(lambda: terminal.tail.read(0)[0] == b"again\r\n")


async def test_the_last_few_that_were_let_go_of_stay_at_hand(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals, "RELEASED_MAX", 2)
    async with running_keeper(home) as scene:
        ended = [await scene.sh(f"echo {number}") for number in range(3)]
        for terminal in ended:
            await all_output(terminal)
            scene.terminals.release(terminal.id)
        assert [scene.terminals.get(each.id) for each in ended] == [None, None, None]
        assert [scene.terminals.left(each.id) for each in ended] == [None, *ended[1:]]


async def test_a_program_with_pipes_is_not_kept_at_hand(home: Path) -> None:
    async with running_keeper(home) as scene:
        program, pipes = await scene.terminals.open_pipes(("true",), "/", ENV)
        for pipe in pipes:
            os.close(pipe)
        with anyio.fail_after(BOUND):
            await program.wait_swept()
        scene.terminals.release(program.id)
        assert (scene.terminals.get(program.id), scene.terminals.left(program.id)) == (None, None)
