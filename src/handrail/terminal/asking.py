"""Whether what runs in a terminal waits for input, how sure that is, and what its prompt says.

Owns the judgement; pure. It does not look (knowing.py), and knows no process but the one in the foreground.

A read on the terminal, line by line, is certain. In raw mode nothing is: a prompt that edits its line, a pager and a
server that listens for keys look alike, so what rests with its cursor behind some text is only likely to ask. A
shell at its own prompt asks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.keeper.protocol import Seen
    from handrail.store.event import Sure, TerminalKind
    from handrail.terminal.screen import Shown

PROMPT_MAX = 200
"""Characters of a prompt that are shown."""
EDITING = frozenset({"bash", "zsh", "fish", "ksh", "mksh", "tcsh", "nu", "xonsh", "elvish", "pwsh"})
"""Shells whose own prompt is never line by line: one of them that reads so was told to, by `read`."""
SHELLS = EDITING | {"sh", "dash", "ash", "busybox", "csh", "yash", "posh"}
_ENDS = (":", "?", ">", "]", ")")
"""How a prompt ends that leaves its answer to the next line."""


def sureness(seen: Seen, of: TerminalKind, at_prompt: bool | None) -> Sure | None:
    """How sure it is that the foreground waits for input; None when it does not.

    `at_prompt` is what the leader's own marks say, None where it makes none. In raw mode the screen decides, too.
    """
    if seen.foreground is None or _is_at_own_prompt(seen, of, at_prompt):
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


def _is_at_own_prompt(seen: Seen, of: TerminalKind, at_prompt: bool | None) -> bool:
    if of == "command" or seen.foreground is None:
        return False
    if not seen.busy and at_prompt is not None:
        return at_prompt
    if seen.foreground.name not in SHELLS:
        return False
    if seen.canonical:  # a plain shell's prompt, or a script's read: of the leader it is the prompt
        return seen.echo and not seen.busy and seen.foreground.name not in EDITING
    return not seen.echo  # its own line editor; `read -n1` leaves the echo on
