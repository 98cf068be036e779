"""A terminal: a process under the keeper, its output, its exit, and who may type into it.

`TerminalNote` is the metadata that the daemon stores with the keeper, so that the next daemon can read it back. `InputSender`,
`InputRequest` and `PersonControl` are plain values. State changes are reported through `TerminalCallbacks`.
"""

from __future__ import annotations

import time
from dataclasses import field
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
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Owner, TerminalKind
from handrail.terminal.input.keys import is_typing
from handrail.terminal.keeper_client import Keeper, KeeperError

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.store.values import Certainty
    from handrail.terminal.output.tail import Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalNote:
    """A terminal's metadata besides its process: kind, name, owner and call."""

    of: TerminalKind
    name: str
    owner: Owner
    nonce: str = ""
    """The nonce in the marks of its shell; empty when the shell writes no marks."""
    call: str | None = None

    @property
    def is_agents(self) -> bool:
        """An agent opened it, so a person who types into it takes control of it."""
        return self.of != "shell" and not self.owner.person


def command_note(name: str) -> TerminalNote:
    """The default note, for a terminal without metadata."""
    return TerminalNote(of="command", name=name, owner=Owner(person=False, name=""))


def note_to_text(note: TerminalNote) -> str:
    return _NOTE_ADAPTER.dump_json(note).decode()


def note_from_text(text: str, name: str) -> TerminalNote:
    """Parse a note; a missing or invalid one becomes `command_note(name)`."""
    try:
        return _NOTE_ADAPTER.validate_json(text)
    except ValidationError:
        return command_note(name)


_NOTE_ADAPTER = TypeAdapter(TerminalNote)

__all__ = [
    "Exit",
    "InputRequest",
    "InputSender",
    "NotReading",
    "PersonControl",
    "Report",
    "Seen",
    "Terminal",
    "TerminalCallbacks",
    "TypingRefused",
]


@dataclass(slots=True, eq=False)
class Terminal:
    """One watched process. `exit` is set when its leader exits, `swept` when its whole process tree has ended."""

    id: str
    argv: tuple[str, ...]
    cwd: str
    size: tuple[int, int]
    created_at: float
    tail: Tail
    note: TerminalNote
    keeper: Keeper = field(repr=False)
    callbacks: TerminalCallbacks = field(repr=False)
    pid: int = 0
    pipes: bool = False
    adopted: bool = False
    """Opened under an earlier daemon: input from that time is only in the journal."""
    agent_gone: bool = False
    """It runs a command of a hosted agent, which ended with an earlier daemon."""
    exit: Exit | None = None
    swept: Report | None = None
    unrecorded: str | None = None
    attached: bool = False
    """A person has attached their own terminal window."""
    seen: Seen | None = None
    """The keeper's last report on the foreground program."""
    asks: InputRequest | None = None
    taken: PersonControl | None = None
    last_output_at: float | None = None
    """Seconds since 1970."""
    last_input_at: float | None = None
    last_input: int | None = None
    """The output offset at the last input; None before the first input that this daemon has seen."""
    _exited: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _tree_ended: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _bell: anyio.Event = field(default_factory=anyio.Event, repr=False)

    async def type(self, data: bytes, typist: InputSender) -> None:
        """Send input.

        Raises TypingRefused when the terminal has ended, when a person has control of it, or when it hides the input
        of an agent; NotReading when the program does not read. A person who types into an agent's terminal takes
        control of it.
        """
        if not typist.person and self.taken is not None:
            raise TypingRefused(_takeover_message(self, self.taken))
        offset = self.tail.end
        if typist.person and is_typing(data):
            self.heed(typist)
        try:
            # No await since the check above: no takeover can come between it and this request.
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
        """Ask the keeper for the state of the foreground program. Raises KeeperError when the terminal has ended."""
        reply = await self.keeper.request(Look(self.keeper.number(), self.id), Looked)
        before, self.seen = self.seen, reply.seen
        if _visible_state(before) != _visible_state(reply.seen):
            self.ring()
        return reply.seen

    def take(self, by: str, holds: bool) -> None:
        """Give control to a person. Typing alone (`holds=False`) does not replace a hold."""
        taken = PersonControl(by=by, holds=holds)
        if self.exit is None and self.taken != taken and (holds or self.taken is None):
            self.taken = taken
            self.callbacks.taken(self)
            self.ring()

    def release(self, by: str) -> None:
        """End a person's control: agents may type again."""
        if self.taken is not None:
            self.taken = None
            self.callbacks.released(self, by)
            self.ring()

    def ask(self, asks: InputRequest | None) -> None:
        """Record that it waits for input, or with None that it no longer does.

        A repeated question updates only its time and calls no callback.
        """
        before, self.asks = self.asks, asks
        if before is None and asks is None:
            return
        if asks is None:
            self.callbacks.went_on(self)
        elif _question_key(before) != _question_key(asks):
            self.callbacks.asked(self)
        self.ring()

    async def changed(self) -> None:
        """Wait for the next change of exit, size, control, question, foreground program or directory."""
        await self._bell.wait()

    def ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    def heed(self, typist: InputSender) -> None:
        """Take over an agent's terminal for a person who is about to type."""
        if self.note.is_agents and self.taken is None:
            self.take(typist.name, holds=False)

    def hear_typing(self, typist: InputSender, data: bytes | None, offset: int) -> None:
        """Record input, sent through us or typed in an attached window. `data` is None when it was hidden."""
        self.last_input_at, self.last_input = time.time(), offset
        self.callbacks.typed(self, typist, data, offset)

    async def write(self, data: bytes) -> None:
        """Send input without checks and without recording a typist. Raises KeeperError."""
        await self.keeper.request(Input(self.keeper.number(), self.id, data, person=True), Typed)

    async def resize(self, cols: int, rows: int) -> None:
        await self.keeper.request(Resize(self.keeper.number(), self.id, cols, rows), Done)
        self.resized(cols, rows)

    def resized(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)
        self.ring()

    async def signal(self, number: int) -> None:
        """Signal the leader only, not its process tree."""
        await self.keeper.request(Signal(self.keeper.number(), self.id, number), Done)

    async def stop(self, grace: float = 2.0) -> Report:
        """Stop the whole process tree; returns when it has ended. The keeper completes the stop even if the caller
        is cancelled."""
        if self.swept is not None:
            return self.swept
        try:
            reply = await self.keeper.request(Stop(self.keeper.number(), self.id, grace), Stopped)
        except KeeperError:
            if self.swept is None:  # the keeper refused; if it were lost, `swept` would be set
                raise
            return self.swept
        return reply.report

    async def wait(self) -> Exit:
        """Wait until the leader exits; returns its exit."""
        await self._exited.wait()
        assert self.exit is not None
        return self.exit

    async def wait_swept(self) -> Report:
        """Wait until the whole process tree has ended; returns the keeper's report."""
        await self._tree_ended.wait()
        assert self.swept is not None
        return self.swept

    def sweep(self, report: Report) -> None:
        self.swept = report
        self._tree_ended.set()

    def leave(self, exit: Exit) -> None:
        """Record the leader's exit; this clears control and question."""
        self.exit = exit
        self.asks = self.taken = None
        self._exited.set()
        self.ring()


def _takeover_message(terminal: Terminal, taken: PersonControl) -> str:
    until = "they release it" if taken.holds else "a while after they stop typing"
    return (
        f"Terminal {terminal.id} is taken over by {taken.by}, so nothing was typed. It is theirs until {until}: wait "
        "with wait_for_terminal, or ask them."
    )


def _visible_state(seen: Seen | None) -> tuple[object, ...] | None:
    """The parts of a report whose change wakes `changed`."""
    return seen and (seen.busy, seen.cwd, seen.foreground)


def _question_key(asks: InputRequest | None) -> tuple[str, bool, str] | None:
    return asks and (asks.prompt, asks.secret, asks.sure)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSender:
    """The sender of input."""

    person: bool
    name: str
    """As shown in the history: `claude-code`, `a person on the page`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """The foreground program waits for input."""

    prompt: str
    sure: Certainty
    secret: bool
    """Echo is off: only a person may answer."""
    since: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonControl:
    """A person has control: agents cannot type."""

    by: str
    holds: bool
    """Until released explicitly; otherwise control ends a while after the person stops typing."""


class TypingRefused(Exception):
    """Nothing was sent; the message gives the reason and the remedy."""


class NotReading(TypingRefused):
    """The input buffer is full because the program does not read; the caller may retry later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalCallbacks:
    """Callbacks for changes in terminals, called synchronously and in order. They must not block."""

    typed: Callable[[Terminal, InputSender, bytes | None, int], None]
    """Terminal, typist, bytes (None when the terminal hid them) and the output offset."""
    taken: Callable[[Terminal], None]
    released: Callable[[Terminal, str], None]
    asked: Callable[[Terminal], None]
    went_on: Callable[[Terminal], None]
