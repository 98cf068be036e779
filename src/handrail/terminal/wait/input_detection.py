"""Whether what runs in a terminal waits for input, how sure that is, and what its prompt says.

Owns the judgement; pure. It does not look (knowing.py), and knows no process but the one in the foreground.

A read on the terminal, line by line, is certain. In raw mode nothing is: a prompt that edits its line, a pager and a
server that listens for keys look alike, so what rests with its cursor behind some text is only likely to ask. A
shell at its own prompt asks nothing. That it is there its marks say; without any, a shell that was started to read
commands from a person is taken to be, and one that runs a script or `-c` is not: that one's reads are questions.

A wait on several things at once (`poll`) counts in raw mode alone: the keeper knows how many a program waits for by
select or poll, but not whether the terminal is among them, and an idle server line by line looks just the same.

Knowing what goes on in every terminal: what runs in its foreground, where, and whether it waits for input.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

import anyio

from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output import screen
from handrail.terminal.terminal import Asks
from handrail.terminal.thread_pool import PEOPLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.keeper.protocol import Seen
    from handrail.store.values import Sure, TerminalKind
    from handrail.terminal.output.screen import Shown
    from handrail.terminal.output.tail import Tail
    from handrail.terminal.shell_marks import Marks
    from handrail.terminal.terminal import Terminal
    from handrail.terminal.terminals import Terminals


PROMPT_MAX = 200
"""Characters of a prompt that are shown."""
EDITING = frozenset({"bash", "zsh", "fish", "ksh", "mksh", "tcsh", "nu", "xonsh", "elvish", "pwsh"})
"""Shells whose own prompt is never line by line: one of them that reads so was told to, by `read`."""
SHELLS = EDITING | {"sh", "dash", "ash", "busybox", "csh", "yash", "posh"}
_COMMAND = frozenset({"command", "commands", "Command", "File"})
"""Options that give a shell something to run, beside a `c` among the short ones."""
_VALUED = frozenset({"--rcfile", "--init-file", "--init-command"})
"""Long options that take the next word."""
_ENDS = (":", "?", ">", "]", ")")
"""How a prompt ends that leaves its answer to the next line."""


def sureness(seen: Seen, of: TerminalKind, at_prompt: bool | None, argv: Sequence[str] = ()) -> Sure | None:
    """How sure it is that the foreground waits for input; None when it does not.

    `at_prompt` is what the leader's own marks say, None where it makes none; `argv` is how the leader was started. In
    raw mode the screen decides, too.
    """
    if seen.foreground is None or _is_at_own_prompt(seen, of, at_prompt, argv):
        return None
    if seen.canonical and seen.reading == "tty":
        return "certain"
    if seen.secret or not seen.canonical:
        return "likely" if seen.reading in {"tty", "poll", "hidden"} else None
    return None


def rests_behind_text(shown: Shown) -> bool:
    """The cursor stands behind some text, at its line's end."""
    line, col = _line(shown)
    return bool(line[:col].strip()) and not line[col:].strip()


def prompt(shown: Shown) -> str:
    """What stands before the cursor; where that is nothing, the line above, if it reads like a question."""
    line, col = _line(shown)
    before = line[:col].strip()
    row = shown.cursor[1]
    if not before and row > 0 and (above := shown.lines[row - 1].strip()).endswith(_ENDS):
        before = above
    return before[-PROMPT_MAX:]


def _line(shown: Shown) -> tuple[str, int]:
    col, row = shown.cursor
    return (shown.lines[row] if row < len(shown.lines) else ""), col


def _is_at_own_prompt(seen: Seen, of: TerminalKind, at_prompt: bool | None, argv: Sequence[str]) -> bool:
    if of == "command" or seen.foreground is None:
        return False
    if not seen.busy and at_prompt is not None:
        return at_prompt
    name = seen.foreground.name
    if name not in SHELLS or (
        not seen.busy and _program(argv) == name and not _reads_commands(name, argv[1:])
    ):
        return False
    if seen.canonical:  # a plain shell's prompt, or a script's read: of the leader it is the prompt
        return seen.echo and not seen.busy and name not in EDITING
    return not seen.echo  # its own line editor; `read -n1` leaves the echo on


def _program(argv: Sequence[str]) -> str:
    """What a leader is called that has not become another program."""
    return PurePath(argv[0]).name.removeprefix("-") if argv else ""


def _reads_commands(shell: str, words: Sequence[str]) -> bool:
    """Whether this shell with these arguments reads commands from whoever types."""
    left, valued = list(words), "C" if shell == "fish" else "oO"
    while left:
        word = left.pop(0)
        if word[:1] not in ("-", "+") or len(word) == 1 or word == "--":
            return not left if word in ("-", "--") else False
        letters = "" if word.startswith("--") else word[1:]
        if word.lstrip("-").partition("=")[0] in _COMMAND or (word[0] == "-" and "c" in letters):
            return False
        if "s" in letters:
            return True  # what follows is for who types to find
        taken = (word in _VALUED) + sum(letter in valued for letter in letters)
        del left[:taken]
    return True


QUIET = 0.3
"""Seconds without output or input before the first look."""
RESTS = 0.5
"""Seconds of quiet before a program in raw mode is taken to wait."""
BUSY_APART = 8.0
IDLE_APART = 60.0
"""Seconds between looks at most: while something runs, which may begin to read without a word, and at a prompt."""
NOISY_APART = 5.0
ASKING_APART = 1.0
"""Seconds between looks while output flows without a pause: what runs may change, and a question be answered."""
SAME_LINE_BYTES = 16 * 1024
"""Output since a question that is searched for a line's end: an answer being typed changes the line, not the question."""


class MarksOf(Protocol):
    """Where the marks of a terminal's shell are known."""

    async def of(self, id: str, nonce: str, tail: Tail) -> Marks | None: ...


@dataclass(slots=True)
class _Watched:
    """When a terminal last stirred, and is looked at next; in monotonic seconds."""

    terminal: Terminal
    stirred_at: float
    due: float
    looked_at: float = -math.inf
    asked_at: int = 0
    """How far its output was when it asked."""
    shown: tuple[tuple[int, tuple[int, int]], screen.Shown] | None = None
    """What was rendered last, and of what: a screen that did not change is not rendered again."""


class Knowing:
    """Looks at all live terminals, in one task."""

    def __init__(self, terminals: Terminals, marks: MarksOf | None = None) -> None:
        self._terminals = terminals
        self._marks = marks
        self._watched: dict[str, _Watched] = {}
        self._wakes_at = math.inf
        self._bell = anyio.Event()
        terminals.stirred = self.stir

    async def run(self) -> None:
        """Until cancelled."""
        for terminal in self._terminals.live.values():
            self.stir(terminal)
        while True:
            bell = self._bell
            self._wakes_at = min((watched.due for watched in self._watched.values()), default=math.inf)
            with anyio.move_on_after(max(0.0, self._wakes_at - time.monotonic())):
                await bell.wait()
            for watched in [item for item in self._watched.values() if item.due <= time.monotonic()]:
                await self._attend(watched)

    def stir(self, terminal: Terminal) -> None:
        """It was opened, printed something, or somebody typed."""
        if terminal.exit is not None or terminal.pipes:
            self._watched.pop(terminal.id, None)
            return
        now = time.monotonic()
        watched = self._watched.get(terminal.id)
        if watched is None:
            watched = self._watched[terminal.id] = _Watched(terminal, now, math.inf)
        watched.stirred_at = now
        watched.due = min(watched.due, now + QUIET)
        if watched.due < self._wakes_at:
            self._wakes_at = watched.due
            self._bell.set()
            self._bell = anyio.Event()

    async def _attend(self, watched: _Watched) -> None:
        terminal, now = watched.terminal, time.monotonic()
        if terminal.exit is not None:
            self._watched.pop(terminal.id, None)
            return
        quiet = now - watched.stirred_at
        apart = ASKING_APART if terminal.asks is not None else NOISY_APART
        if quiet < QUIET and now < watched.looked_at + apart:
            watched.due = min(watched.stirred_at + QUIET, watched.looked_at + apart)
            return
        watched.looked_at = now
        try:
            seen = await terminal.look()
            await self._judge(watched, seen, quiet)
        except KeeperError:
            pass  # it has just ended, or the keeper is gone: whoever is told of that tells more
        watched.due = self._next(watched)

    def _next(self, watched: _Watched) -> float:
        """After half a second of quiet, then after twice as long each time."""
        now, terminal = time.monotonic(), watched.terminal
        quiet = now - watched.stirred_at
        if quiet < QUIET:
            return watched.stirred_at + QUIET
        if quiet < RESTS:
            return watched.stirred_at + RESTS
        most = BUSY_APART if terminal.seen is None or terminal.seen.busy or terminal.asks else IDLE_APART
        return now + min(max(quiet, RESTS), most)

    async def _judge(self, watched: _Watched, seen: Seen, quiet: float) -> None:
        """Say what it asks, or that it asks no longer."""
        terminal, note = watched.terminal, watched.terminal.note
        marks = None
        if self._marks is not None and note.nonce and not seen.busy:
            marks = await self._marks.of(terminal.id, note.nonce, terminal.tail)
        sure = sureness(seen, note.of, marks and marks.at_prompt, terminal.argv)
        if sure is None:
            terminal.ask(None)
        elif sure == "certain" or quiet >= RESTS:
            await self._ask(watched, sure, seen)

    async def _ask(self, watched: _Watched, sure: Sure, seen: Seen) -> None:
        terminal = watched.terminal
        stirred_at, end = watched.stirred_at, terminal.tail.end
        shown = await _shown(watched, end)
        if watched.stirred_at != stirred_at or terminal.exit is not None:
            return  # it went on meanwhile: what was seen is of no use
        if not seen.canonical and not rests_behind_text(shown):
            terminal.ask(None)
        elif not self._is_same_question(watched, seen.secret):
            watched.asked_at = end
            terminal.ask(Asks(prompt=prompt(shown), sure=sure, secret=seen.secret, since=time.time()))

    def _is_same_question(self, watched: _Watched, secret: bool) -> bool:
        """What it asked before still stands on its line, perhaps with half an answer behind it."""
        asks = watched.terminal.asks
        if asks is None or asks.secret != secret:
            return False
        since, following = watched.terminal.tail.read(watched.asked_at, SAME_LINE_BYTES)
        return b"\n" not in since and following >= watched.terminal.tail.end


async def _shown(watched: _Watched, end: int) -> screen.Shown:
    terminal = watched.terminal
    stand = (end, terminal.size)
    if watched.shown is None or watched.shown[0] != stand:
        shown = await PEOPLE.run(screen.render, terminal.tail, *terminal.size)
        watched.shown = (stand, shown)
    return watched.shown[1]
