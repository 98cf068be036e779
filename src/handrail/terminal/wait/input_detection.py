"""Input detection: whether a terminal's foreground program waits for input, how certain that is, and its prompt.

`sureness`, `rests_behind_text` and `prompt` are pure. `InputDetector` polls all running terminals and records the result.

In canonical mode a read on the terminal is certain. In raw mode a line editor, a pager and a server that listens for
keys look alike, so a quiet program whose cursor stands behind text is only likely to wait. A shell at its own prompt
does not count. Its marks show that; without marks, an interactive shell counts as at its prompt, and a shell that runs
a script or `-c` does not: its reads are questions.

A `poll` counts only in raw mode. The keeper knows that a program waits in select or poll, but not whether the terminal
is among the descriptors, and an idle server in canonical mode looks the same.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

import anyio

from handrail.lazy_dataclass import dataclass
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output import screen
from handrail.terminal.terminal import InputRequest
from handrail.terminal.thread_pool import PEOPLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.keeper.protocol import Seen
    from handrail.store.values import Certainty, TerminalKind
    from handrail.terminal.output.screen import RenderedScreen
    from handrail.terminal.output.tail import Tail
    from handrail.terminal.shell_marks import Marks
    from handrail.terminal.terminal import Terminal
    from handrail.terminal.terminals import Terminals


PROMPT_MAX = 200
"""Characters of a prompt that are kept."""
EDITING = frozenset({"bash", "zsh", "fish", "ksh", "mksh", "tcsh", "nu", "xonsh", "elvish", "pwsh"})
"""Shells with a line editor. If one of them reads in canonical mode, it runs the `read` builtin."""
SHELLS = EDITING | {"sh", "dash", "ash", "busybox", "csh", "yash", "posh"}
_COMMAND = frozenset({"command", "commands", "Command", "File"})
"""Options that pass a command to the shell, besides the short option `c`."""
_VALUED = frozenset({"--rcfile", "--init-file", "--init-command"})
"""Long options that take the next word."""
_ENDS = (":", "?", ">", "]", ")")
"""Last characters of a prompt whose answer goes on the next line."""


def sureness(
    seen: Seen, of: TerminalKind, at_prompt: bool | None, argv: Sequence[str] = ()
) -> Certainty | None:
    """How certain it is that the foreground program waits for input; None when it does not.

    `at_prompt` comes from the leader's marks and is None without marks; `argv` is the leader's command line. In raw
    mode the caller must also check the screen (`rests_behind_text`).
    """
    if seen.foreground is None or _is_at_own_prompt(seen, of, at_prompt, argv):
        return None
    if seen.canonical and seen.reading == "tty":
        return "certain"
    if seen.secret or not seen.canonical:
        return "likely" if seen.reading in {"tty", "poll", "hidden"} else None
    return None


def rests_behind_text(shown: RenderedScreen) -> bool:
    """Whether the cursor is behind text, at the end of its line."""
    line, col = _cursor_line(shown)
    return bool(line[:col].strip()) and not line[col:].strip()


def prompt(shown: RenderedScreen) -> str:
    """The text before the cursor; if that is empty, the line above, if it ends like a question."""
    line, col = _cursor_line(shown)
    before = line[:col].strip()
    row = shown.cursor[1]
    if not before and row > 0 and (above := shown.lines[row - 1].strip()).endswith(_ENDS):
        before = above
    return before[-PROMPT_MAX:]


def _cursor_line(shown: RenderedScreen) -> tuple[str, int]:
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
    if seen.canonical:
        # The prompt of a shell without line editor, or a script's read. For the leader it is the prompt.
        return seen.echo and not seen.busy and name not in EDITING
    return not seen.echo  # the line editor turns echo off, `read -n1` leaves it on


def _program(argv: Sequence[str]) -> str:
    """The process name of the leader, as long as it has not replaced itself by exec."""
    return PurePath(argv[0]).name.removeprefix("-") if argv else ""


def _reads_commands(shell: str, words: Sequence[str]) -> bool:
    """Whether this shell with these arguments reads commands from the terminal."""
    left, valued = list(words), "C" if shell == "fish" else "oO"
    while left:
        word = left.pop(0)
        if word[:1] not in ("-", "+") or len(word) == 1 or word == "--":
            return not left if word in ("-", "--") else False
        letters = "" if word.startswith("--") else word[1:]
        if word.lstrip("-").partition("=")[0] in _COMMAND or (word[0] == "-" and "c" in letters):
            return False
        if "s" in letters:
            return True  # -s: the words after it are positional parameters
        values = (word in _VALUED) + sum(letter in valued for letter in letters)
        del left[:values]
    return True


QUIET = 0.3
"""Seconds without output or input before the first check."""
RESTS = 0.5
"""Seconds of quiet before a program in raw mode counts as waiting."""
BUSY_APART = 8.0
IDLE_APART = 60.0
"""Upper bounds for the seconds between checks: while a program runs, which may start to read without output, and at
the shell prompt."""
NOISY_APART = 5.0
ASKING_APART = 1.0
"""Seconds between checks during continuous output, without and with an open question: the foreground program may
change, and the question may be answered."""
SAME_LINE_BYTES = 16 * 1024
"""Output since a question that is searched for a newline. Without a newline it is an answer being typed, and the
question is the same."""


class MarksOf(Protocol):
    """Source of shell marks by terminal."""

    async def of(self, id: str, nonce: str, tail: Tail) -> Marks | None: ...


@dataclass(slots=True)
class _Watched:
    """A terminal and its schedule, in monotonic seconds."""

    terminal: Terminal
    stirred_at: float
    due: float
    looked_at: float = -math.inf
    asked_at: int = 0
    """The output offset when the question was detected."""
    shown: tuple[tuple[int, tuple[int, int]], screen.RenderedScreen] | None = None
    """Cache of the last rendered screen, with the output end and size it was rendered for."""


@dataclass(frozen=True, slots=True)
class _Before:
    """A terminal's activity just before a look: if it is the same after it, the look fits the screen."""

    stirred_at: float
    end: int
    quiet: float
    """Seconds."""


class InputDetector:
    """Polls all running terminals, in one task."""

    def __init__(self, terminals: Terminals, marks: MarksOf | None = None) -> None:
        self._terminals = terminals
        self._marks = marks
        self._watched: dict[str, _Watched] = {}
        self._wakes_at = math.inf
        self._bell = anyio.Event()
        terminals.stirred = self.stir

    async def run(self) -> None:
        """Check terminals when they are due, until cancelled."""
        for terminal in self._terminals.live.values():
            self.stir(terminal)
        while True:
            bell = self._bell
            self._wakes_at = min((watched.due for watched in self._watched.values()), default=math.inf)
            with anyio.move_on_after(max(0.0, self._wakes_at - time.monotonic())):
                await bell.wait()
            for watched in [item for item in self._watched.values() if item.due <= time.monotonic()]:
                await self._check(watched)

    def stir(self, terminal: Terminal) -> None:
        """Schedule a check: the terminal was opened, printed output, or got input."""
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

    async def _check(self, watched: _Watched) -> None:
        terminal, now = watched.terminal, time.monotonic()
        if terminal.exit is not None:
            self._watched.pop(terminal.id, None)
            return
        quiet = now - watched.stirred_at
        apart = ASKING_APART if terminal.asks is not None else NOISY_APART
        if quiet < QUIET and now < watched.looked_at + apart:
            watched.due = min(watched.stirred_at + QUIET, watched.looked_at + apart)
            return
        watched.looked_at, before = now, _Before(watched.stirred_at, terminal.tail.end, quiet)
        # An error means that the terminal has ended or the keeper is lost: other callbacks report both.
        with suppress(KeeperError):
            await self._update(watched, await terminal.look(), before)
        watched.due = self._next_due(watched)

    def _next_due(self, watched: _Watched) -> float:
        """The time of the next check: after `QUIET`, after `RESTS`, then after doubling intervals."""
        now, terminal = time.monotonic(), watched.terminal
        quiet = now - watched.stirred_at
        if quiet < QUIET:
            return watched.stirred_at + QUIET
        if quiet < RESTS:
            return watched.stirred_at + RESTS
        interval_max = (
            BUSY_APART if terminal.seen is None or terminal.seen.busy or terminal.asks else IDLE_APART
        )
        return now + min(max(quiet, RESTS), interval_max)

    async def _update(self, watched: _Watched, seen: Seen, before: _Before) -> None:
        """Record the question, or clear it."""
        terminal, note = watched.terminal, watched.terminal.note
        marks = None
        if self._marks is not None and note.nonce and not seen.busy:
            marks = await self._marks.of(terminal.id, note.nonce, terminal.tail)
        sure = sureness(seen, note.of, marks and marks.at_prompt, terminal.argv)
        if sure is None:
            terminal.ask(None)
        elif sure == "certain" or before.quiet >= RESTS:
            await self._ask(watched, sure, seen, before)

    async def _ask(self, watched: _Watched, sure: Certainty, seen: Seen, before: _Before) -> None:
        terminal = watched.terminal
        shown = await _render(watched, before.end)
        is_same = (watched.stirred_at, terminal.tail.end) == (before.stirred_at, before.end)
        if not is_same or terminal.exit is not None:
            return  # it has gone on since the look, so `seen` is out of date; its output or input causes another check
        if not seen.canonical and not rests_behind_text(shown):
            terminal.ask(None)
        elif not self._is_same_question(watched, seen.secret):
            watched.asked_at = before.end
            terminal.ask(InputRequest(prompt=prompt(shown), sure=sure, secret=seen.secret, since=time.time()))

    def _is_same_question(self, watched: _Watched, secret: bool) -> bool:
        """Whether the recorded question is still on its line, perhaps with a partial answer behind it."""
        asks = watched.terminal.asks
        if asks is None or asks.secret != secret:
            return False
        since, following = watched.terminal.tail.read(watched.asked_at, SAME_LINE_BYTES)
        return b"\n" not in since and following >= watched.terminal.tail.end


async def _render(watched: _Watched, end: int) -> screen.RenderedScreen:
    terminal = watched.terminal
    key = (end, terminal.size)
    if watched.shown is None or watched.shown[0] != key:
        shown = await PEOPLE.run(screen.render_screen, terminal.tail, *terminal.size)
        watched.shown = (key, shown)
    return watched.shown[1]
