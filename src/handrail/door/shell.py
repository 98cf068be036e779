"""`handrail shell`: the person's own shell in a terminal that Handrail keeps, shown in the window it is started from.

Owns the command line, when a plain shell is run instead, and how it ends: with the exit status of the program, or by
the signal that ended it. Does not know what passes between window and terminal: that is `relay`'s.
"""

from __future__ import annotations

import os
import signal
import sys

from handrail.door import plain
from handrail.door.attached import Attached, NotAttached
from handrail.door.offer import offer
from handrail.door.opening import NotOpened, open_terminal
from handrail.door.outlet import Outlet
from handrail.door.relay import Relay
from handrail.door.spool_reader import SpoolReader
from handrail.door.window import Interrupted, Window
from handrail.hardening import hide_memory
from handrail.places import Places

FAILED, NO_DAEMON = 1, 3


class Wish:
    """What was asked for on the command line."""

    # No dataclass: importing that would take longer than opening the terminal.
    __slots__ = ("command", "keep", "name", "or_plain")

    def __init__(
        self, *, keep: bool = False, name: str = "", or_plain: bool = False, command: list[str] | None = None
    ) -> None:
        self.keep = keep
        self.name = name
        self.or_plain = or_plain
        """Be the plain shell when it cannot be a kept one: nobody is to be left without a shell."""
        self.command = command or []


def main(arguments: list[str]) -> int | None:
    """Run what these arguments ask for; the exit status. None when they ask for something else, or make no sense."""
    wish = parse(arguments)
    return None if wish is None else run(wish)


def parse(arguments: list[str]) -> Wish | None:
    """Only what opening a shell takes. Help, and what is wrong, is told by those who have the time."""
    wish, rest = Wish(), list(arguments)
    while rest and rest[0].startswith("-"):
        match rest.pop(0).partition("="):
            case ("--", "", ""):
                wish.command = rest
                return wish
            case ("--keep", "", ""):
                wish.keep = True
            case ("--or-plain", "", ""):
                wish.or_plain = True
            case ("--name", "=", name):
                wish.name = name
            case ("--name", "", "") if rest:
                wish.name = rest.pop(0)
            case _:
                return None
    wish.command = rest
    return wish


def run(wish: Wish) -> int:
    """Be the window until the program ends; the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    hide_memory()
    if wish.command and plain.find(wish.command[0]) is None:
        _note(f"handrail shell: {wish.command[0]}: command not found")
        return plain.NOT_FOUND
    why = _why_plain(wish)
    if why:
        _note(why)
        plain.become(wish.command)
    return _in_window(wish)


def _in_window(wish: Wish) -> int:
    try:
        with Window(0) as window:
            relay, terminal = _shown(wish, window)
    except Interrupted as interrupted:
        return die_by(interrupted.number)
    except NotKept as problem:
        if wish.or_plain:
            _note(f"Not kept by Handrail: {problem}")
            plain.become(wish.command)
        _note(str(problem))
        return problem.code
    if relay.ended_by is None:
        return _end(terminal)
    if wish.keep:
        _note(f"Terminal {terminal.terminal} goes on.{_how(terminal)}")
    return die_by(relay.ended_by)


def _why_plain(wish: Wish) -> str:
    inside = os.environ.get("HANDRAIL_TERMINAL")
    if inside:
        return f"This is terminal {inside} of Handrail already, so no other is opened in it."
    if not wish.command and not os.isatty(0):
        return "The input is no terminal, so this is the plain shell; `handrail shell -- CMD` would be kept."
    return ""


class NotKept(Exception):
    """There is nothing to show; the sentence says why."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


def _shown(wish: Wish, window: Window) -> tuple[Relay, Attached]:
    """Open a terminal and show it until one of the two ends. Raises NotKept, Interrupted."""
    places = Places.find(os.environ)
    terminal = _opened(wish, places)
    if wish.keep:
        _note(f"This is terminal {terminal.terminal}; it goes on when this window is closed.{_how(terminal)}")
    if window.is_terminal and not wish.or_plain:
        offer(places, _note)
    reader = SpoolReader(os.path.join(places.spool, terminal.terminal))
    relay = Relay(window, terminal, reader, Outlet(1))
    window.begin()
    terminal.resize(*window.size())
    relay.run()
    terminal.close()
    return relay, terminal


def _opened(wish: Wish, places: Places) -> Attached:
    try:
        made = open_terminal(places, wish.command, wish.name, keep=wish.keep, is_patient=not wish.or_plain)
        return Attached.attach(places, made, ends=not wish.keep)
    except NotOpened as problem:
        raise NotKept(str(problem), NO_DAEMON if problem.is_gone else FAILED) from None
    except NotAttached as problem:
        raise NotKept(str(problem), FAILED) from None
    except Interrupted:
        raise
    except Exception as error:  # whatever is wrong with us, a person must get a shell
        if not wish.or_plain:
            raise
        raise NotKept(f"{type(error).__name__}: {error}", FAILED) from None


def _how(terminal: Attached) -> str:
    name = terminal.terminal
    return f" `handrail terminal read {name}` shows it, `handrail terminal close {name}` ends it."


def _end(terminal: Attached) -> int:
    """As the program ended, so do we."""
    ended = terminal.exit or {"lost": "Handrail's keeper has ended, and with it all of its terminals."}
    if ended.get("code") is not None:
        return int(ended["code"])
    if ended.get("signal"):
        return die_by(_number(ended["signal"]))
    _note(f"{ended['lost']} What it printed is kept: `handrail terminal read {terminal.terminal}`.")
    return FAILED


def _number(name: str) -> int:
    known = {each.name: int(each) for each in signal.Signals}
    return known.get(name) or int(name.removeprefix("SIG"))


def die_by(number: int) -> int:
    """End by a signal, so that whoever started us sees what they would see of the program itself."""
    import resource  # noqa: PLC0415 - needed by few

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _note(sentence: str) -> None:
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except OSError:
        return  # the window is gone
