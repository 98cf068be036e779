"""The words in which a terminal is shared: who types, who has it, what it asks, and whoever is told.

Values only; they do not know the terminal they are about.

A terminal: a process under the keeper, with its output, its exit and the end of its tree, and who shares
it.

What a daemon tells the keeper of a terminal, so that the next daemon knows it too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from pydantic import TypeAdapter, ValidationError

from handrail.keeper.protocol import (
    NOT_READING,
    Done,
    Exit,
    Input,
    Look,
    Looked,
    Report,
    Resize,
    Seen,
    Signal,
    Stop,
    Stopped,
    Typed,
)
from handrail.store.values import Owner, TerminalKind
from handrail.terminal.input.keys import is_typing
from handrail.terminal.keeper_client import Keeper, KeeperError

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.store.values import Sure
    from handrail.terminal.output.tail import Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a terminal is, besides a process: whose, called what, and of which call."""

    of: TerminalKind
    name: str
    owner: Owner
    nonce: str = ""
    """What the marks of its own shell carry; empty when it makes none."""
    call: str | None = None

    @property
    def is_agents(self) -> bool:
        """An agent opened it, so a person who types into it takes it over."""
        return self.of != "shell" and not self.owner.person


def command(name: str) -> Note:
    """Of a terminal about which nothing else is known."""
    return Note(of="command", name=name, owner=Owner(person=False, name=""))


def to_text(note: Note) -> str:
    return _notes.dump_json(note).decode()


def from_text(text: str, name: str) -> Note:
    """The note in a text; what cannot be read, or was never written, is a command's of this `name`."""
    try:
        return _notes.validate_json(text)
    except ValidationError:
        return command(name)


_notes = TypeAdapter(Note)

__all__ = [
    "Asks",
    "Exit",
    "NotReading",
    "Report",
    "Seen",
    "Taken",
    "Terminal",
    "Told",
    "TypingRefused",
    "Typist",
]


@dataclass(slots=True, eq=False)
class Terminal:
    """One watched process. `exit` is set once its leader has left, `swept` once its whole tree is gone."""

    id: str
    argv: tuple[str, ...]
    cwd: str
    size: tuple[int, int]
    created_at: float
    tail: Tail
    note: Note
    keeper: Keeper = field(repr=False)
    told: Told = field(repr=False)
    pid: int = 0
    pipes: bool = False
    adopted: bool = False
    """Opened under a daemon before this one: what was typed then stands only in the record."""
    exit: Exit | None = None
    swept: Report | None = None
    unrecorded: str | None = None
    attached: bool = False
    """A person's own window is on it."""
    seen: Seen | None = None
    """As it looked last."""
    asks: Asks | None = None
    taken: Taken | None = None
    last_output_at: float | None = None
    """Seconds since 1970."""
    last_input_at: float | None = None
    last_input: int | None = None
    """How far its output had come when somebody typed last; None when nobody has since this daemon knows it."""
    _left: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _gone: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _bell: anyio.Event = field(default_factory=anyio.Event, repr=False)

    async def type(self, data: bytes, typist: Typist) -> None:
        """Type. Raises TypingRefused when it has ended, is taken over, or hides what an agent would type, and
        NotReading when it does not read. An agent's terminal is a person's while they type into it."""
        if not typist.person and self.taken is not None:
            raise TypingRefused(_taken_sentence(self, self.taken))
        offset = self.tail.end
        if typist.person and is_typing(data):
            self.heed(typist)
        try:
            # Sent in this very tick: nobody can take the terminal over between the look above and the keeper.
            reply = await self.keeper.request(
                Input(self.keeper.number(), self.id, data, typist.person), Typed
            )
        except KeeperError as problem:
            refused = NotReading if problem.code == NOT_READING else TypingRefused
            raise refused(str(problem)) from None
        if not reply.typed:
            raise TypingRefused(
                f"Terminal {self.id} hides what is typed: it asks for a secret, which only a person may give. "
                "Ask the person to type it, and wait."
            )
        self.hear_typing(typist, None if reply.secret else data, offset)

    async def look(self) -> Seen:
        """How it is right now. Raises KeeperError when it has ended."""
        reply = await self.keeper.request(Look(self.keeper.number(), self.id), Looked)
        before, self.seen = self.seen, reply.seen
        if _told_apart(before) != _told_apart(reply.seen):
            self.ring()
        return reply.seen

    def take(self, by: str, holds: bool) -> None:
        """A person has it from now on. One who only types does not undo a hold."""
        wanted = Taken(by=by, holds=holds)
        if self.exit is None and self.taken != wanted and (holds or self.taken is None):
            self.taken = wanted
            self.told.taken(self)
            self.ring()

    def release(self, by: str) -> None:
        """Agents may type again."""
        if self.taken is not None:
            self.taken = None
            self.told.released(self, by)
            self.ring()

    def ask(self, asks: Asks | None) -> None:
        """It waits for input, or no longer does. The same question over again is no news but for its time."""
        before, self.asks = self.asks, asks
        if before is None and asks is None:
            return
        if asks is None:
            self.told.went_on(self)
        elif _question(before) != _question(asks):
            self.told.asked(self)
        self.ring()

    async def changed(self) -> None:
        """Wakes on any change of its exit, its size, who has it, whether it asks, and what runs in it where."""
        await self._bell.wait()

    def ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    def heed(self, typist: Typist) -> None:
        """A person is about to type."""
        if self.note.is_agents and self.taken is None:
            self.take(typist.name, holds=False)

    def hear_typing(self, typist: Typist, data: bytes | None, offset: int) -> None:
        """Somebody has typed, here or in a window of their own."""
        self.last_input_at, self.last_input = time.time(), offset
        self.told.typed(self, typist, data, offset)

    async def write(self, data: bytes) -> None:
        """Type as nobody in particular. Raises KeeperError."""
        await self.keeper.request(Input(self.keeper.number(), self.id, data, person=True), Typed)

    async def resize(self, cols: int, rows: int) -> None:
        await self.keeper.request(Resize(self.keeper.number(), self.id, cols, rows), Done)
        self.resized(cols, rows)

    def resized(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)
        self.ring()

    async def signal(self, number: int) -> None:
        """To the leader alone."""
        await self.keeper.request(Signal(self.keeper.number(), self.id, number), Done)

    async def stop(self, grace: float = 2.0) -> Report:
        """End the whole tree; returns when nothing of it is left. Goes on even if the caller is cancelled."""
        if self.swept is not None:
            return self.swept
        try:
            reply = await self.keeper.request(Stop(self.keeper.number(), self.id, grace), Stopped)
        except KeeperError:
            if self.swept is None:  # the keeper was not lost: it refused
                raise
            return self.swept
        return reply.report

    async def wait(self) -> Exit:
        """How the leader ended, as soon as it has."""
        await self._left.wait()
        assert self.exit is not None
        return self.exit

    async def wait_swept(self) -> Report:
        """How the rest of its tree ended, as soon as nothing of it is left."""
        await self._gone.wait()
        assert self.swept is not None
        return self.swept

    def sweep(self, report: Report) -> None:
        self.swept = report
        self._gone.set()

    def leave(self, exit: Exit) -> None:
        """Its leader has left; with that nobody has it, and it asks nothing."""
        self.exit = exit
        self.asks = self.taken = None
        self._left.set()
        self.ring()


def _taken_sentence(terminal: Terminal, taken: Taken) -> str:
    until = "they release it" if taken.holds else "a while after they stop typing"
    return (
        f"Terminal {terminal.id} is taken over by {taken.by}, so nothing was typed. It is theirs until {until}: wait "
        "with wait_for_terminal, or ask them."
    )


def _told_apart(seen: Seen | None) -> tuple[object, ...] | None:
    """What of a look is news."""
    return seen and (seen.busy, seen.cwd, seen.foreground)


def _question(asks: Asks | None) -> tuple[str, bool, str] | None:
    return asks and (asks.prompt, asks.secret, asks.sure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Typist:
    """Who types."""

    person: bool
    name: str
    """As the history shows it: `claude-code`, `a person on the page`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What runs in a terminal waits for input."""

    prompt: str
    sure: Sure
    secret: bool
    """It hides what is typed: only a person may answer."""
    since: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A person has it: agents cannot type."""

    by: str
    holds: bool
    """Until it is released; otherwise only while the person types."""


class TypingRefused(Exception):
    """Nothing was typed; the sentence says why, and what to do."""


class NotReading(TypingRefused):
    """The program left so much unread that nothing more fits: the same may be typed again a little later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Who is told what happens in terminals, at once and in order. None of these may block or await."""

    typed: Callable[[Terminal, Typist, bytes | None, int], None]
    """None for the bytes where the terminal hid them; the number is how far its output had come."""
    taken: Callable[[Terminal], None]
    released: Callable[[Terminal, str], None]
    asked: Callable[[Terminal], None]
    went_on: Callable[[Terminal], None]
