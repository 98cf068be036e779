"""The screen is what a person would see: as tmux shows it, however the output came, and whatever it was."""

import os
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.keeper_terminals import BOUND, KeeperTerminals, running_keeper, until

from handrail.keeper.spool import Spool
from handrail.terminal.input.keys import encode
from handrail.terminal.output import screen
from handrail.terminal.output.screen import RenderedScreen, render_screen
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import Terminal

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
}
SECONDS = "60"
"""After which whatever runs in it ends by itself."""


class Tmux:
    def __init__(self, folder: Path, cols: int, rows: int) -> None:
        self._name = f"handrail-{os.getpid()}-{secrets.token_hex(4)}"
        self._folder = folder
        self._size = ("-x", str(cols), "-y", str(rows))
        (folder / "tmux.conf").write_text("set -g status off\nset -g remain-on-exit on\n")

    def run(self, *argv: str) -> None:
        """Show a program, started with the same environment as ours."""
        inside = shlex.join(["timeout", SECONDS, "env", *(f"{k}={v}" for k, v in ENV.items()), *argv])
        self._ask("-f", str(self._folder / "tmux.conf"), "new-session", "-d", *self._size, inside)

    def replay(self, printed: bytes) -> None:
        """Show bytes as they are."""
        (self._folder / "printed").write_bytes(printed)
        shown = shlex.quote(str(self._folder / "printed"))
        self.run("sh", "-c", f"stty raw -echo; cat {shown}; exec sleep {SECONDS}")

    def type(self, text: str) -> None:
        self._ask("send-keys", "-l", text)

    def shown(self) -> tuple[str, ...]:
        """Each row, trailing blanks trimmed."""
        said = self._ask("capture-pane", "-p").removesuffix("\n")
        return tuple(line.rstrip() for line in said.split("\n"))

    def end(self) -> None:
        subprocess.run(
            ["tmux", "-L", self._name, "kill-server"], check=False, capture_output=True, timeout=20
        )

    def _ask(self, *words: str) -> str:
        command = ["tmux", "-L", self._name, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20, env=ENV).stdout


@contextmanager
def tmux(folder: Path, cols: int, rows: int) -> Generator[Tmux]:
    other = Tmux(folder, cols, rows)
    try:
        yield other
    finally:
        other.end()


pytestmark = pytest.mark.anyio
COLS, ROWS = 80, 24
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is what we compare with")
ESCAPES = [
    b"\x1b[2J", b"\x1b[H", b"\x1b[3;7H", b"\x1b[A", b"\x1b[2B", b"\x1b[5C", b"\x1b[K", b"\x1b[1K", b"\x1b[J",
    b"\x1b[L", b"\x1b[2M", b"\x1b[3P", b"\x1b[2@", b"\x1b[4X", b"\x1b[2;4r", b"\x1b[r", b"\x1bM", b"\x1bD", b"\x1b7",
    b"\x1b8", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?7l", b"\x1b[?7h", b"\x1b[?6h", b"\x1b[4h", b"\x1b[?1h",
    b"\x1b[?2004h", b"\x1bc", b"\x1b(0", b"\x1b(B", b"\x1b[31;1m", b"\x1b[0m", b"\x1b]0;title\x07", b"\x1b]8;;x\x1b\\",
    b"\x1bPq#0\x1b\\", b"\x1b_Ga=T,f=24,s=1,v=1;AAAA\x1b\\", b"\x1b[99999999999C", b"\x1b[;;;;;m", b"\x1b#8", b"\x1b[6n",
    b"\x1b[?3h", b"\x1b[999S", b"\x1b[999T", b"\x1b[100b", b"\t", b"\x1bH", b"\x1b[3g", b"\x0e", b"\x0f", b"\x85",
]  # fmt: skip
WORDS = [
    b"word ",
    b"\r\n",
    b"\n",
    b"\r",
    b"\b",
    "中文".encode(),
    "e\u0301".encode(),
    "👍🏽".encode(),
    b"\xf0\x9f",
    b"\xff",
]


def spooled(folder: Path, pieces: Iterable[bytes], cap: int = 1 << 26) -> Tail:
    spool = Spool(str(folder), cap)
    for piece in pieces:
        if piece:
            spool.append(memoryview(piece))
    spool.close()
    return Tail(folder)


@pytest.fixture
async def scene(home: Path) -> AsyncIterator[KeeperTerminals]:
    async with running_keeper(home) as scene:
        yield scene


async def opened(scene: KeeperTerminals, *argv: str) -> Terminal:
    env = [f"{key}={value}" for key, value in ENV.items()]
    return await scene.open("env", *env, *argv, size=(COLS, ROWS))


async def shows(terminal: Terminal, wanted: str) -> None:
    await until(lambda: any(wanted in line for line in render_screen(terminal.tail, COLS, ROWS).lines))


def printed(terminal: Terminal) -> bytes:
    return b"".join(screen.read_chunks(terminal.tail, 0, terminal.tail.end))


async def same_in_tmux(other: Tmux, shown: RenderedScreen) -> None:
    """tmux shows the same, as soon as it has read all."""
    with anyio.move_on_after(BOUND):
        while other.shown() != shown.lines:  # noqa: ASYNC110 - it rings no bell
            await anyio.sleep(0.02)
    assert other.shown() == shown.lines


async def replayed_is_the_same(folder: Path, data: bytes) -> RenderedScreen:
    shown = render_screen(spooled(folder / "again", [data]), COLS, ROWS)
    with tmux(folder, COLS, ROWS) as other:
        other.replay(data)
        await same_in_tmux(other, shown)
    return shown


@needs_tmux
async def test_vim_looks_as_in_tmux_live_and_replayed(scene: KeeperTerminals, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {n}: größe 中文\n" for n in range(100)))
    argv = ("vim", "-u", "NONE", "-N", "-n", "-i", "NONE", str(tmp_path / "text"))
    keys = ":set number ruler\r40Go inserted here\x1bk"
    terminal = await opened(scene, *argv)
    await shows(terminal, "line 3")
    await terminal.write(keys.encode())
    await shows(terminal, "40,")
    await shows(terminal, " inserted here")
    shown = render_screen(terminal.tail, COLS, ROWS)
    assert shown.alternate
    with tmux(tmp_path, COLS, ROWS) as other:
        other.run(*argv)
        await until(lambda: "line 3" in "\n".join(other.shown()))
        other.type(keys)
        await same_in_tmux(other, shown)
    await replayed_is_the_same(tmp_path, printed(terminal))
    await terminal.write(b":q!\r")
    with anyio.fail_after(BOUND):
        await terminal.wait()
    assert not render_screen(terminal.tail, COLS, ROWS).alternate


@needs_tmux
async def test_less_looks_as_in_tmux_live_and_replayed(scene: KeeperTerminals, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"{n} \x1b[31mred\x1b[0m {'x' * (n % 90)}\n" for n in range(300)))
    argv = ("less", "-R", str(tmp_path / "text"))
    terminal = await opened(scene, *argv)
    await shows(terminal, "10 red")
    await terminal.write(b" /250 \r")
    await shows(terminal, "250 red")
    shown = render_screen(terminal.tail, COLS, ROWS)
    with tmux(tmp_path, COLS, ROWS) as other:
        other.run(*argv)
        await until(lambda: "10 red" in "\n".join(other.shown()))
        other.type(" /250 \r")
        await same_in_tmux(other, shown)
    replayed = await replayed_is_the_same(tmp_path, printed(terminal))
    assert (replayed.alternate, replayed.application_keys) == (shown.alternate, shown.application_keys)
    await terminal.stop(0.0)


@needs_tmux
async def test_top_looks_as_in_tmux(scene: KeeperTerminals, tmp_path: Path) -> None:
    terminal = await opened(scene, "top", "-d", "0.2")
    await shows(terminal, "PID")
    seen = terminal.tail.end
    await until(lambda: terminal.tail.end > seen + 500)
    await terminal.stop(0.0)
    assert any("PID" in line for line in (await replayed_is_the_same(tmp_path, printed(terminal))).lines)


@needs_tmux
async def test_a_python_prompt_looks_as_in_tmux(scene: KeeperTerminals, tmp_path: Path) -> None:
    terminal = await opened(scene, sys.executable, "-q", "-i", "-I")
    await shows(terminal, ">>>")
    await terminal.write(
        b"print('an' + 'swer', 6 * 7)\rx = 'edited' \b\b\b\b\bcut'\r" + encode(["up", "left"])
    )
    await shows(terminal, "answer 42")
    await until(lambda: printed(terminal).count(b">>>") >= 3)
    await replayed_is_the_same(tmp_path, printed(terminal))
    await terminal.stop(0.0)


@needs_tmux
@pytest.mark.parametrize(
    "data",
    [
        "中文字 wide\r\n".encode() * 3 + ("宽" * 41).encode() + b"x",
        "e\u0301 a\u0308\u0323 n\u0303 combining, 😀 emoji ✓\r\n".encode(),
        b"".join(b"\r[%-20s] %d%%" % (b"=" * (n // 5), n) for n in range(101)),
        b"a\r\nb\r\nc" + b"".join(b"\x1b[2A\r\x1b[2Ka %d\r\n\x1b[2Kb\r\n\x1b[2Kc" % n for n in range(9)),
        b"head\r\n\x1b[2;5r\x1b[5;1H"
        + b"".join(b"scrolled %d\r\n" % n for n in range(20))
        + b"\x1b[r\x1b[9;1Hend",
        b"x" * 200 + b"\x1b[A\x1b[5Dmiddle\x1b[K",
        b"before\r\n\x1b[?1049h\x1b[2J\x1b[Hinside\x1b[?1049lafter",
        b"tab\tstop\r\n\x1b[3;10Hplaced\x1b[3D\x1b[2@in\x1b[2;1H\x1b[1Linserted",
        b"".join(b"line %d\r\n" % n for n in range(500)),
    ],
)
async def test_what_programs_print_looks_as_in_tmux(tmp_path: Path, data: bytes) -> None:
    await replayed_is_the_same(tmp_path, data)


def test_an_empty_tail_is_an_empty_screen(tmp_path: Path) -> None:
    shown = render_screen(Tail(tmp_path / "none"), 10, 3)
    assert (shown.lines, shown.cursor) == (("", "", ""), (0, 0))


def test_modes_and_title_set_long_ago_are_not_lost(tmp_path: Path) -> None:
    lines = [b"line %07d and more of it\r\n" % n for n in range(100_000)]
    tail = spooled(tmp_path / "t", [b"\x1b[?1h\x1b[?2004h\x1b]2;my title\x07", *lines])
    shown = render_screen(tail, 40, 5)
    assert (shown.application_keys, shown.bracketed_paste, shown.title) == (True, True, "my title")
    assert shown.lines == (*(f"line {n:07d} and more of it" for n in range(99_996, 100_000)), "")


@pytest.mark.serial  # a screen is given two seconds of the clock
@pytest.mark.parametrize("size", [3 << 20, screen.FULL_SCREEN + (3 << 20)])
def test_a_full_screen_program_begun_long_ago_still_has_its_screen(tmp_path: Path, size: int) -> None:
    frame = b"\x1b[H\x1b[1;1Hhead\x1b[K" + b"\x1b[3;1Hbusy" * 90 + b"\r\n"
    pieces = [b"$ before\r\n\x1b[?1049h", *[frame] * (size // len(frame))]
    tail = spooled(tmp_path / "t", pieces)
    shown = render_screen(tail, 40, 5)
    assert (shown.alternate, shown.lines) == (True, ("head", "", "busy", "", ""))
    tail = spooled(tmp_path / "u", [*pieces, b"\x1b[?1049l$ after"])
    shown = render_screen(tail, 40, 5)
    assert (shown.alternate, shown.lines[:2]) == (False, ("$ before", "$ after"))


def test_a_look_again_shows_what_came_since_even_half_a_character(tmp_path: Path) -> None:
    spool, tail = Spool(str(tmp_path / "t"), 1 << 20), Tail(tmp_path / "t")
    seen: list[str] = []
    for piece in (b"a\xe2", b"\x9c\x93b\x1b[3", b";3Hc"):
        spool.append(memoryview(piece))
        seen.append("|".join(render_screen(tail, 10, 3).lines))
    spool.close()
    assert seen == ["a||", "a✓b||", "a✓b||  c"]


def test_whatever_the_emulator_has_a_screen_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: screen.Engine, data: bytes) -> None:
        raise RuntimeError("broken")

    tail = spooled(tmp_path / "t", [b"\x1b[31mone\x1b[0m\r\n", b"0123456789abc"])
    monkeypatch.setattr(screen.Engine, "feed", broken)
    assert render_screen(tail, 10, 4).lines == ("one", "0123456789", "abc", "")


def test_a_broken_screen_is_built_anew_from_the_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = spooled(tmp_path / "t", [b"hello"])
    render_screen(tail, 10, 2)
    whole, left = screen.Engine.shown, [1]

    def fails_once(self: screen.Engine) -> RenderedScreen:
        if left and left.pop():
            raise RuntimeError("broken")
        return whole(self)

    monkeypatch.setattr(screen.Engine, "shown", fails_once)
    assert render_screen(tail, 10, 2).lines == ("hello", "")


def test_only_a_few_emulators_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[screen.Engine] = []
    close = screen.Engine.close

    def noted(self: screen.Engine) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(screen.Engine, "close", noted)
    for number in range(12):
        render_screen(spooled(tmp_path / str(number), [b"x"]), 10, 2)
    assert len(closed) >= 8


@pytest.mark.parametrize("size", [(0, 0), (-5, 3), (1, 1), (10**9, 10**9)])
def test_any_size_is_shown_within_bounds(tmp_path: Path, size: tuple[int, int]) -> None:
    shown = render_screen(spooled(tmp_path / "t", [b"hello\r\nworld"]), *size)
    assert 1 <= len(shown.lines) <= screen.CELLS_MAX


@pytest.mark.parametrize("bomb", [b"x\x1b[65535b" * 60_000, b"\x1bc" * 500_000], ids=["repeat", "reset"])
def test_output_that_keeps_the_emulator_busy_is_shown_as_text_until_it_is_past(
    tmp_path: Path, bomb: bytes
) -> None:
    tail = spooled(tmp_path, [bomb, b"\r\nthe last line"])
    began = time.thread_time()
    assert "the last line" in render_screen(tail, COLS, ROWS).lines
    first = time.thread_time() - began
    assert first < screen.SECONDS + 5
    again = time.thread_time()
    assert "the last line" in render_screen(tail, COLS, ROWS).lines
    assert time.thread_time() - again < screen.SECONDS, "it is not tried over and over"
    later = Spool(str(tmp_path / "later"), 1 << 26)
    for piece in (bomb, b"\x1bc", b"ordinary\r\n" * screen.ENOUGH):
        later.append(memoryview(piece))
    later.close()
    assert render_screen(Tail(tmp_path / "later"), COLS, ROWS).lines[0] == "ordinary"


def test_output_cannot_make_us_read_or_delete_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tty-graphics-protocol-x"
    path.write_bytes(b"\0\0\0")
    name = subprocess.run(["base64", "-w0"], input=os.fsencode(path), capture_output=True, check=True).stdout
    for medium in (b"t", b"f"):
        render_screen(
            spooled(tmp_path / medium.decode(), [b"\x1b_Ga=T,f=24,s=1,v=1,t=%b;%b\x1b\\" % (medium, name)]),
            10,
            2,
        )
    assert path.read_bytes() == b"\0\0\0"


hostile = st.lists(st.one_of(st.sampled_from(ESCAPES + WORDS), st.binary(max_size=8)), max_size=80).map(
    b"".join
)


@settings(max_examples=150, deadline=None)
@given(
    data=hostile,
    cuts=st.lists(st.integers(0, 400), max_size=8),
    size=st.sampled_from([(1, 1), (5, 3), (20, 6)]),
)
@example(data=b"\x1b[?1049h\xf0\x9f\x91\x8d", cuts=list(range(13)), size=(5, 3))
def test_however_output_is_cut_into_pieces_the_screen_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int], size: tuple[int, int]
) -> None:
    folder = tmp_path_factory.mktemp("t")
    whole = render_screen(spooled(folder / "whole", [data]), *size)
    assert len(whole.lines) == size[1]
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    spool = Spool(str(folder / "cut"), 1 << 20)
    shown = whole
    for begin, end in pairwise(at):
        spool.append(memoryview(data)[begin:end])
        shown = render_screen(Tail(folder / "cut"), *size)
    spool.close()
    assert shown == whole


FUZZ = """
import random, sys
from handrail.terminal.output.screen import Engine
from tests.terminal.output.test_screen import ESCAPES, WORDS
chance = random.Random(int(sys.argv[1]))
for _ in range(400):
    cols, rows = chance.choice([(1, 1), (2, 2), (80, 24), (7, 500), (500, 3)])
    emulator = Engine(cols, rows)
    for _ in range(chance.randrange(60)):
        kind = chance.random()
        if kind < 0.5:
            emulator.feed(chance.choice(ESCAPES))
        elif kind < 0.8:
            emulator.feed(chance.choice(WORDS) * chance.randrange(1, 50))
        elif kind < 0.9:
            emulator.feed(b"\\x1b[" + bytes(chance.choices(b"0123456789;:?>= mhlrHJKABCDPXLM@", k=12)))
        else:
            emulator.feed(chance.randbytes(chance.randrange(1, 200)))
        if chance.random() < 0.1:
            assert len(emulator.shown().lines) == rows
    assert len(emulator.shown().lines) == rows
    emulator.close()
print("all shown")
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_hostile_output_does_not_crash_the_emulator(seed: str) -> None:
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, "-c", FUZZ, seed],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (ran.returncode, ran.stdout) == (0, "all shown\n"), ran.stderr[-2000:]
