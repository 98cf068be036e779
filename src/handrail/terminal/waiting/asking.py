"""Whether what runs in a terminal waits for input, how sure that is, and what its prompt says.

Owns the judgement; pure. It does not look (knowing.py), and knows no process but the one in the foreground.

A read on the terminal, line by line, is certain. In raw mode nothing is: a prompt that edits its line, a pager and a
server that listens for keys look alike, so what rests with its cursor behind some text is only likely to ask. A
shell at its own prompt asks nothing. That it is there its marks say; without any, a shell that was started to read
commands from a person is taken to be, and one that runs a script or `-c` is not: that one's reads are questions.

A wait on several things at once (`poll`) counts in raw mode alone: the keeper knows how many a program waits for by
select or poll, but not whether the terminal is among them, and an idle server line by line looks just the same.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.keeper.protocol import Seen
    from handrail.store.value import Sure, TerminalKind
    from handrail.terminal.output.screen import Shown

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
