"""A conversation at this terminal: lines typed, answers spoken; or one prompt for a program.

Owns what a person types, and when they leave. What becomes of one prompt is in talk.py, how it looks in speech.py.
"""

from contextlib import suppress
from importlib import import_module

from handrail.cli.failure import Code, Failure
from handrail.cli.live import Live
from handrail.cli.show import as_json, note, say
from handrail.cli.speech import Speech, ended
from handrail.cli.status import Status
from handrail.cli.talk import Talk, Whom
from handrail.cli.words import Row

LEAVE = ("/quit", "/exit", "/q")


class Voice:
    """A conversation on this terminal."""

    def __init__(self, live: Live, thread: str, thoughts: bool) -> None:
        self._speech = Speech(thoughts=thoughts)
        self._status = Status()
        self._talk = Talk(live, thread, self)

    def prompt(self, words: str, whom: Whom) -> str:
        try:
            stop = self._talk.prompt(words, whom)
        finally:
            self.rest()
        ended(stop)
        return stop

    def said(self, flow: Row) -> None:
        if flow["parts"]:
            self._status.clear()
        for part in flow["parts"]:
            self._speech.show(part)

    def began_or_ended(self, activity: Row) -> None:
        """Told by the line that shows what is under way."""

    def passes(self, doing: str) -> None:
        if not self._speech.is_speaking:  # words that come are sign enough
            self._status.show(doing)

    def rest(self) -> None:
        self._status.clear()
        self._speech.rest()


class Printed:
    """A conversation as a program reads it: an object for each thing that it is told."""

    def said(self, flow: Row) -> None:
        for part in flow["parts"]:
            as_json({"update": part["kind"], **part}, line=True)

    def began_or_ended(self, activity: Row) -> None:
        as_json({"update": "activity", **activity}, line=True)

    def passes(self, doing: str) -> None: ...

    def rest(self) -> None: ...


def converse(voice: Voice, whom: Whom) -> str:
    """Until the person leaves; how the last answer ended is of no interest then."""
    while (line := _typed()) is not None:
        try:
            voice.prompt(line, whom)
        except Failure as problem:
            if problem.code is Code.NO_DAEMON:
                raise
            note((str(problem), "red"))
    return "end_turn"


def for_programs(live: Live, thread: str, words: str, whom: Whom) -> str:
    """One prompt, each update as an object; how it ended."""
    stop = Talk(live, thread, Printed()).prompt(words, whom)
    as_json({"stop_reason": stop, "thread": thread}, line=True)
    return stop


def _typed() -> str | None:
    """The next thing to say; None when the person leaves."""
    with suppress(ImportError):
        import_module("readline")  # gives `input` its editing
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            say("")
            return None
        except KeyboardInterrupt:
            say("")
            continue
        if line in LEAVE:
            return None
        if line:
            return line
