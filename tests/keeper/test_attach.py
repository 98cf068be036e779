"""A person's own window reaches one terminal, with or without a daemon, and costs nothing when it does not read."""

import os
import random
import signal
import socket
import string
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, KeeperTerminals, all_output, running_keeper, until

from handrail.framing import LineBuffer
from handrail.keeper.connection import WINDOW_INPUT_MAX
from handrail.keeper.message_framing import FRAME_MAX, encode, name_of
from handrail.keeper.protocol import (
    PROTOCOL,
    Attached,
    Done,
    Exit,
    Exited,
    Failed,
    Forget,
    Grown,
    Health,
    Hello,
    Input,
    Kept,
    Listen,
    Look,
    Notice,
    Overheard,
    Recall,
    Refused,
    Remember,
    Replaced,
    Request,
    Resize,
    Resized,
    Shutdown,
    Signal,
    Start,
    Stop,
    Stopped,
    Swept,
    Typed,
    Welcome,
    from_keeper,
)
from handrail.paths import Places
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals

M = TypeVar("M")


@dataclass
class Peer:
    """A connection to the keeper; `heard` is all it was told and nobody has asked for yet."""

    sock: socket.socket
    heard: list[Any] = field(default_factory=list[Any])
    _lines: LineBuffer = field(default_factory=lambda: LineBuffer(FRAME_MAX))

    def say(self, message: object) -> None:
        self.sock.sendall(encode(message))

    def wait_for(self, kind: type[M], **wanted: object) -> M:
        """The first message of this kind, with these fields, that was or will be told."""
        while True:
            for message in self.heard:
                if (
                    isinstance(message, kind)
                    and wanted.items() <= {name: getattr(message, name) for name in wanted}.items()
                ):
                    self.heard.remove(message)
                    return message
            self.listen()

    def listen(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise EOFError("The keeper hung up.")
        self.heard += [from_keeper(line) for line in self._lines.feed(data)]


@dataclass
class Window(Peer):
    kept: Kept | None = None


@contextmanager
def connected(places: Places) -> Generator[Peer]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        sock.connect(str(places.keeper_socket))
        yield Peer(sock)


@contextmanager
def attached(places: Places, terminal: str, *, ends: bool = False) -> Generator[Window]:
    with connected(places) as peer:
        window = Window(peer.sock)
        window.say(Hello(PROTOCOL, "attach", terminal=terminal, ends=ends))
        assert window.wait_for(Welcome).kept == 1
        window.kept = window.wait_for(Kept)
        yield window


def refusal(places: Places, hello: Hello) -> str:
    with connected(places) as peer:
        peer.say(hello)
        return peer.wait_for(Refused).why


class Ear:
    """Passes on what the daemon hears, and remembers it."""

    def __init__(self, terminals: Terminals) -> None:
        self.adopt, self.lost, self._terminals = terminals.adopt, terminals.lost, terminals
        self.heard: list[Notice] = []

    def hear(self, notice: Notice) -> None:
        if not isinstance(notice, Grown):
            self.heard.append(notice)
        self._terminals.hear(notice)


@asynccontextmanager
async def listening(home: Path) -> AsyncGenerator[tuple[KeeperTerminals, Ear]]:
    async with running_keeper(home) as scene:
        ear = Ear(scene.terminals)
        scene.keeper.listener = ear
        yield scene, ear


def resize(scene: KeeperTerminals, terminal: Terminal, cols: int, rows: int) -> Resize:
    return Resize(scene.keeper.number(), terminal.id, cols, rows)


async def test_a_window_types_hears_of_the_output_and_of_the_end(home: Path) -> None:
    async with listening(home) as (scene, ear):
        terminal = await scene.sh("read x; echo got $x; exit 3", size=(90, 20))
        with attached(scene.places, terminal.id) as window:
            kept = window.kept
            assert kept is not None
            assert (kept.terminal, kept.pid, kept.cols, kept.attached) == (
                terminal.id,
                terminal.pid,
                90,
                True,
            )
            window.say(Input(7, terminal.id, b"it\n"))
            assert window.wait_for(Typed) == Typed(7, secret=False, typed=True)
            assert window.wait_for(Exited).exit == Exit(code=3)
            end = window.wait_for(Swept).size
            assert window.wait_for(Grown).size <= end
            assert await all_output(terminal) == b"it\r\ngot it\r\n"
            await until(lambda: Overheard(terminal.id, b"it\n", secret=False, size=0) in ear.heard)
            assert Attached(terminal.id, attached=True) in ear.heard
        await until(lambda: ear.heard[-1] == Attached(terminal.id, attached=False))


async def test_what_ended_shows_in_a_window_until_it_is_forgotten(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("exit 4")
        await all_output(terminal)
        with attached(scene.places, terminal.id, ends=True) as window:
            assert window.kept is not None
            assert window.kept.exit == Exit(code=4)
            assert window.kept.report is not None
            window.say(Input(1, terminal.id, b"x"))
            assert "has ended" in window.wait_for(Failed).why
            window.say(Stop(2, terminal.id))
            assert window.wait_for(Stopped).report == window.kept.report
            await scene.terminals.forget(terminal.id)
            with pytest.raises(EOFError):
                window.listen()


async def test_the_size_is_the_windows_while_there_is_one(home: Path) -> None:
    async with listening(home) as (scene, ear):
        terminal = await scene.sh("trap 'stty size' WINCH; echo up; while :; do sleep 0.01; done")
        await until(lambda: terminal.tail.end > 0)
        with attached(scene.places, terminal.id) as one, attached(scene.places, terminal.id) as other:
            one.say(Resize(1, terminal.id, 101, 31))
            assert one.wait_for(Done).id == 1
            assert other.wait_for(Resized) == Resized(terminal.id, 101, 31)
            await until(lambda: Resized(terminal.id, 101, 31) in ear.heard)
            await until(lambda: b"31 101" in terminal.tail.read(0)[0])
            one.say(Resize(2, terminal.id, 0, 31))
            assert "cannot have 0 columns" in one.wait_for(Failed, id=2).why
            with pytest.raises(KeeperError, match="open in a window, and has that window's size"):
                await scene.keeper.request(resize(scene, terminal, 80, 24), Done)
            assert not [each for each in one.heard if isinstance(each, Resized)]
        await until(lambda: ear.heard[-1] == Attached(terminal.id, attached=False))
        told = [each for each in ear.heard if isinstance(each, Attached)]
        assert [each.attached for each in told] == [True, False]
        await scene.keeper.request(resize(scene, terminal, 80, 24), Done)


async def test_a_terminal_ends_with_the_window_that_said_so_and_with_no_other(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("sleep", "1000")
        with attached(scene.places, terminal.id, ends=True) as own:
            with attached(scene.places, terminal.id) as visitor:
                visitor.say(Resize(1, terminal.id, 70, 20))
                visitor.wait_for(Done)
            own.say(Signal(2, terminal.id, signal.SIGWINCH))
            own.wait_for(Done, id=2)
            assert terminal.exit is None
        await until(lambda: terminal.exit is not None)
        await until(lambda: ("swept", terminal.id) in scene.events)


async def test_a_window_that_dies_without_a_word_ends_its_terminal_too(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("sleep", "1000")
        hello = encode(Hello(PROTOCOL, "attach", terminal=terminal.id, ends=True))
        program = (
            "import os, socket, sys\ns = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            f"s.send({hello!r}); s.recv(1); os.kill(os.getpid(), 9)"
        )
        command = [sys.executable, "-c", program, str(scene.places.keeper_socket)]
        with anyio.fail_after(BOUND):
            await anyio.run_process(command, check=False)
        await until(lambda: terminal.exit is not None)


async def test_a_window_signals_and_stops(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("trap 'echo caught' USR1; echo up; while :; do sleep 0.01; done")
        await until(lambda: terminal.tail.end > 0)
        with attached(scene.places, terminal.id) as window:
            window.say(Signal(1, terminal.id, signal.SIGUSR1))
            window.wait_for(Done, id=1)
            await until(lambda: b"caught" in terminal.tail.read(0)[0])
            window.say(Signal(2, terminal.id, 4000))
            assert "no signal 4000" in window.wait_for(Failed, id=2).why
            window.say(Stop(3, terminal.id, 0.0))
            assert window.wait_for(Stopped, id=3).report.why == "stop"


async def test_what_a_terminal_hides_is_typed_but_told_to_nobody(home: Path) -> None:
    async with listening(home) as (scene, ear):
        terminal = await scene.sh("stty -echo; echo up; head -n1 | md5sum")
        await until(lambda: terminal.tail.end > 0)
        with attached(scene.places, terminal.id) as window:
            window.say(Input(1, terminal.id, b"hunter2\n", person=False))
            assert window.wait_for(Typed) == Typed(1, secret=True, typed=True)
            window.wait_for(Exited)
        await until(lambda: any(isinstance(each, Overheard) for each in ear.heard))
        assert [each for each in ear.heard if isinstance(each, Overheard)] == [
            Overheard(terminal.id, b"", secret=True, size=4)
        ]
        assert b"hunter2" not in await all_output(terminal)


@pytest.mark.parametrize("whose", ["itself", "another"])
async def test_no_window_opens_from_inside(home: Path, whose: str) -> None:
    hello = '{"is": "hello", "protocol": %d, "want": "attach", "terminal": "%s"}\\n'
    program = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        f"s.send(b'{hello % (PROTOCOL, 'inner' if whose == 'itself' else 'victim')}'); print(s.makefile().readline())"
    )
    async with running_keeper(home) as scene:
        await scene.open("cat", id="victim")
        command = (sys.executable, "-c", program, str(scene.places.keeper_socket))
        said = await all_output(await scene.open(*command, id="inner"))
        assert b"does not take orders" in said
        assert b"welcome" not in said


async def test_a_window_must_be_on_a_terminal_that_can_be_seen(home: Path) -> None:
    async with running_keeper(home) as scene:
        piped, pipes = await scene.terminals.open_pipes(["sleep", "1000"], "/", ENV)
        terminal = await scene.open("cat")
        for fd in pipes:
            os.close(fd)
        assert "no terminal nowhere" in refusal(scene.places, Hello(PROTOCOL, "attach", terminal="nowhere"))
        assert "has pipes" in refusal(scene.places, Hello(PROTOCOL, "attach", terminal=piped.id))
        assert "different versions" in refusal(
            scene.places, Hello(PROTOCOL + 1, "attach", terminal=terminal.id)
        )
        assert "does not know" in refusal(scene.places, Hello(PROTOCOL, "peep", terminal=terminal.id))
        with attached(scene.places, terminal.id) as window:
            window.say(Hello(PROTOCOL, "daemon"))
            assert "hello once" in window.wait_for(Refused).why
            with pytest.raises(EOFError):
                window.listen()
        await scene.keeper.health()  # its place was not taken


def as_daemon(peer: Peer, last: bytes) -> list[Overheard]:
    """Take the daemon's seat, and hear all that waits until what was typed `last`."""
    peer.say(Hello(PROTOCOL, "daemon"))
    for _ in range(peer.wait_for(Welcome).kept):
        peer.wait_for(Kept)
    heard = [peer.wait_for(Overheard)]
    while not heard[-1].data.startswith(last):
        heard.append(peer.wait_for(Overheard))
    return heard


async def test_what_is_typed_while_no_daemon_runs_waits_for_the_next(home: Path) -> None:
    async with running_keeper(home, end=False) as scene:
        terminal = await scene.sh("stty raw -echo; echo; cat > /dev/null")
        await until(lambda: terminal.tail.end == 1)  # from here on nothing that is typed is shown
    with attached(scene.places, terminal.id) as window:
        for number, data in enumerate((b"one", b"two")):
            window.say(Input(number, terminal.id, data))
            window.wait_for(Typed, id=number)
        with connected(scene.places) as daemon:
            assert as_daemon(daemon, b"two") == [
                Overheard(terminal.id, b"one", secret=False, size=1),
                Overheard(terminal.id, b"two", secret=False, size=1),
            ]
        for number in range(700):
            window.say(Input(number, terminal.id, b"%04d" % number + b"x" * 1000))
            window.wait_for(Typed, id=number)
        with connected(scene.places) as daemon:
            late = as_daemon(daemon, b"0699")
    assert 100 < len(late) < 700
    assert sum(len(each.data) for each in late) <= WINDOW_INPUT_MAX
    async with running_keeper(home):
        pass


async def test_a_window_that_never_reads_costs_nothing_and_is_told_the_latest(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh(f"while [ ! -e {home}/end ]; do echo x; done")
        with attached(scene.places, terminal.id) as silent, attached(scene.places, terminal.id) as busy:
            silent.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            before = (await scene.keeper.health()).rss_bytes
            for number in range(6000):
                busy.say(Resize(number, terminal.id, 50 + number % 50, 20))
                busy.wait_for(Done, id=number)
                busy.heard.clear()
            (home / "end").touch()
            busy.wait_for(Swept)
            assert (await scene.keeper.health()).rss_bytes - before < 2_000_000
            end = silent.wait_for(Exited).size
            silent.wait_for(Swept)
            resized = [each for each in silent.heard if isinstance(each, Resized)]
            assert len(resized) < 6000
            while resized[-1].cols != 50 + 5999 % 50:
                resized.append(silent.wait_for(Resized))
        assert terminal.tail.end == end


ELSEWHERE: dict[type, Request] = {
    Start: Start(1, "new", ("touch", "started"), "/", {}),
    Input: Input(1, "victim", b"x\n"),
    Resize: Resize(1, "victim", 10, 10),
    Signal: Signal(1, "victim", 9),
    Look: Look(1, "victim"),
    Stop: Stop(1, "victim", 0.0),
    Forget: Forget(1, "victim"),
    Remember: Remember(1, "key", b"value"),
    Recall: Recall(1, "key"),
    Listen: Listen(1, (0,)),
    Health: Health(1),
    Shutdown: Shutdown(1, 0.0),
}


async def test_a_window_gives_no_order_beyond_its_terminal(home: Path) -> None:
    async with running_keeper(home) as scene:
        victim, own = await scene.open("cat", id="victim"), await scene.open("cat", id="own")
        with attached(scene.places, own.id) as window:
            for request in ELSEWHERE.values():
                window.say(request)
                assert "and nothing else" in window.wait_for(Failed, id=1).why, request
            for request in (Look(1, "own"), Forget(1, "own"), Start(1, "own", ("true",), "/", {})):
                window.say(request)
                assert "and nothing else" in window.wait_for(Failed, id=1).why, request
        assert (victim.exit, own.exit, victim.tail.end) == (None, None, 0)


async def test_whatever_a_window_sends_reaches_no_other_terminal(home: Path) -> None:
    chance = random.Random(20260)
    async with running_keeper(home) as scene:
        victim = await scene.open("cat", id="victim")
        await scene.open("sleep", "1000", id="own")
        for _ in range(40):
            with attached(scene.places, "own") as window:
                frames = b"".join(fuzzed(chance) for _ in range(100))
                window.sock.sendall(frames)
                window.sock.shutdown(socket.SHUT_WR)
                with pytest.raises(EOFError):
                    window.wait_for(Replaced)  # which never comes
        assert (victim.exit, victim.size, victim.tail.end) == (None, (80, 24), 0)
        assert set(scene.terminals.live) == {"victim", "own"}
        assert await scene.keeper.recall("key") is None


def fuzzed(chance: random.Random) -> bytes:
    """A message to another terminal, whole or broken in one of several ways."""
    kind = chance.choice([*ELSEWHERE])
    line = bytearray(encode(ELSEWHERE[kind]).rstrip(b"\n"))
    match chance.randrange(6):
        case 0:
            line[chance.randrange(len(line))] = chance.randrange(256)
        case 1:
            line = line[: chance.randrange(len(line))]
        case 2:
            name = name_of(kind).encode()
            line = bytearray(line.replace(name, chance.choice([*map(name_of, ELSEWHERE)]).encode()))
        case 3:
            line = bytearray(line.replace(b'"victim"', b'["own", "victim"]'))
        case 4:
            junk = "".join(chance.choice(string.printable) for _ in range(20))
            line = bytearray(line.replace(b"victim", b"own\\u0000victim")) + junk.encode()
        case _:
            pass
    return bytes(line) + b"\n"
