"""Every terminal the daemon knows of: opening, adopting after a restart, and losing them with the keeper.

Owns the terminals by id. Does not journal: whoever composes the daemon is called back, at once and in order, and may
not block there.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from handrail.keeper.protocol import (
    Attached,
    Done,
    Exit,
    Exited,
    Forget,
    Grown,
    Kept,
    Overheard,
    Replaced,
    Report,
    Resized,
    Start,
    Started,
    Stop,
    Swept,
    Unrecorded,
)
from handrail.terminal import terminal as notes
from handrail.terminal.input.keys import is_typing
from handrail.terminal.input.typing_history import Typing
from handrail.terminal.keeper_client import close_all
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import Terminal, Told, Typist

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from handrail.keeper.protocol import Notice, Reply
    from handrail.terminal.keeper_client import Keeper
    from handrail.terminal.terminal import Note

    Callback = Callable[[Terminal], None]
    Typed = Callable[[Terminal, str, bool, str | None, int], None]

MAX_BYTES = 64 * 1024 * 1024
MAX_LINES = 1_000_000
"""Output kept of one terminal; what is older is dropped."""
MOST_LEFT = 64
"""Terminals let go of last that are still at hand: mostly it is their output that is read next."""
WINDOW = "a person in a window of their own"


def _ignore(*_: object) -> None:
    """For whoever does not want to be called back."""


class Terminals:
    """Those that live, and those that ended and are not forgotten yet."""

    def __init__(
        self,
        keeper: Keeper,
        spool: Path,
        *,
        opened: Callback = _ignore,
        ended: Callback = _ignore,
        swept: Callback = _ignore,
        lost: Callable[[str], None] = _ignore,
        typed: Typed = _ignore,
        taken: Callback = _ignore,
        released: Callable[[Terminal, str], None] = _ignore,
        asked: Callback = _ignore,
        went_on: Callback = _ignore,
    ) -> None:
        """`ended` is called when the leader has left, `swept` when its whole tree is gone (or lost), `lost` when the
        keeper is, after the terminals it takes with it. What ended while no daemon ran is told on adoption. `typed` gets who
        typed, whether that is a person, what (None where the terminal did not show it), and how far its output was."""
        self._keeper = keeper
        self._spool = spool
        self._opened, self._ended, self._swept, self._lost = opened, ended, swept, lost
        self._typing = Typing(typed)
        self._told = Told(typed=self._typed, taken=taken, released=released, asked=asked, went_on=went_on)
        self.stirred: Callback = _ignore
        """Whoever looks at terminals is told when one was opened, printed something, or was typed into."""
        self._all: dict[str, Terminal] = {}
        self._left: dict[str, Terminal] = {}
        keeper.listener = self

    async def run(self) -> None:
        """Make a history of what is typed, and give agents their terminals back in time; until cancelled."""
        await self._typing.run()

    @property
    def known(self) -> Sequence[Terminal]:
        return tuple(self._all.values())

    @property
    def live(self) -> Mapping[str, Terminal]:
        return {name: terminal for name, terminal in self._all.items() if terminal.exit is None}

    def get(self, id: str) -> Terminal | None:
        return self._all.get(id)

    def left(self, id: str) -> Terminal | None:
        """One that was let go of lately, which nothing changes any more; None when only the record knows it."""
        return self._left.get(id)

    def tail(self, id: str) -> Tail:
        """The output of any terminal, also one that ended long ago."""
        known = self._all.get(id)
        return Tail(self._spool / id, closed=True) if known is None else known.tail

    async def open(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        size: tuple[int, int] = (80, 24),
        cap_bytes: int = MAX_BYTES,
        *,
        cap_lines: int = MAX_LINES,
        grace: float = 2.0,
        id: str | None = None,
        note: Note | None = None,
        cwd_id: tuple[int, int] | None = None,
    ) -> Terminal:
        """Start a program in a PTY of this size (columns, rows). Raises KeeperError with the reason it cannot run.

        `cwd_id` is the device and inode that `cwd` must have at that moment.
        """
        order = Start(
            self._keeper.number(),
            id or _new_id(),
            tuple(argv),
            cwd,
            dict(env),
            *size,
            cap_bytes=cap_bytes,
            cap_lines=cap_lines,
            grace=grace,
            note=notes.to_text(note or notes.command(_name(argv))),
            cwd_id=cwd_id,
        )
        terminal, _ = await self._start(order)
        return terminal

    async def open_pipes(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        *,
        grace: float = 2.0,
        id: str | None = None,
    ) -> tuple[Terminal, tuple[int, int, int]]:
        """Start a program with pipes, which end with this daemon; ours to close: its stdin, stdout and stderr."""
        order = Start(
            self._keeper.number(), id or _new_id(), tuple(argv), cwd, dict(env), pipes=True, grace=grace
        )
        terminal, (stdin, stdout, stderr) = await self._start(order)
        return terminal, (stdin, stdout, stderr)

    async def forget(self, id: str, *, delete: bool = False) -> None:
        """Let go of an ended terminal, once what it did is recorded; with `delete`, of its output too."""
        await self._keeper.request(Forget(self._keeper.number(), id, delete), Done)
        self._all.pop(id, None)

    def release(self, id: str) -> None:
        """Let go of an ended terminal without waiting for the keeper's word; its output stays on disk."""
        terminal = self._all.get(id)
        if terminal is not None and terminal.swept is not None:
            del self._all[id]
            self._keeper.post(Forget(self._keeper.number(), id))
            if not terminal.pipes:
                self._left[id] = terminal
            if len(self._left) > MOST_LEFT:
                del self._left[next(iter(self._left))]

    def deleted(self, id: str) -> None:
        """The output of one that was let go of is about to be deleted: from now on only the record tells of it."""
        self._left.pop(id, None)

    # What the keeper says of its own accord

    def adopt(self, kept: list[Kept]) -> None:
        for state in kept:
            known = self._all.get(state.terminal)
            if known is None:
                known = self._all[state.terminal] = self._adopted(state)
            known.unrecorded = state.unrecorded
            known.size = (state.cols, state.rows)
            known.attached = state.attached
            known.ring()
            known.tail.ring()
            self.stirred(known)
            self._leave(known, state.exit)
            self._sweep(known, state.report)

    def hear(self, notice: Notice) -> None:
        if isinstance(notice, Kept | Replaced):
            return
        terminal = self._all.get(notice.terminal)
        if terminal is not None:
            self._hear(terminal, notice)
        elif isinstance(notice, Swept):  # its opening was given up before it ran
            self._keeper.post(Forget(self._keeper.number(), notice.terminal, delete=True))

    def lost(self, why: str) -> None:
        for terminal in list(self._all.values()):
            self._leave(terminal, Exit(lost=why))
            self._sweep(terminal, Report("keeper gone"))
        self._lost(why)

    def _hear(
        self,
        terminal: Terminal,
        notice: Grown | Unrecorded | Exited | Swept | Overheard | Resized | Attached,
    ) -> None:
        match notice:
            case Grown():
                self._grown(terminal)
            case Unrecorded(_, _, why):
                terminal.unrecorded = why
            case Exited(_, exit, _):
                self._grown(terminal)
                self._leave(terminal, exit)
            case Swept(_, report, _):
                self._sweep(terminal, report)
            case Overheard(_, data, secret, size):
                self._overheard(terminal, None if secret else data, size)
            case Resized(_, cols, rows):
                terminal.resized(cols, rows)
            case Attached(_, attached):
                terminal.attached = attached
                terminal.ring()

    def _grown(self, terminal: Terminal) -> None:
        terminal.last_output_at = time.time()
        terminal.tail.ring()
        self.stirred(terminal)

    def _overheard(self, terminal: Terminal, data: bytes | None, size: int) -> None:
        owner = terminal.note.owner
        typist = Typist(person=True, name=owner.name if owner.person else WINDOW)
        if data is None or is_typing(data):
            terminal.heed(typist)
        terminal.hear_typing(typist, data, size)

    def _typed(self, terminal: Terminal, typist: Typist, data: bytes | None, offset: int) -> None:
        self._typing.hear(terminal, typist, data, offset)
        self.stirred(terminal)

    def _leave(self, terminal: Terminal, exit: Exit | None) -> None:
        if exit is not None and terminal.exit is None:
            terminal.leave(exit)
            self._typing.ring()
            self.stirred(terminal)
            self._ended(terminal)

    def _sweep(self, terminal: Terminal, report: Report | None) -> None:
        if report is not None and terminal.swept is None:
            terminal.sweep(report)
            terminal.tail.close()
            self._swept(terminal)

    async def _start(self, order: Start) -> tuple[Terminal, tuple[int, ...]]:
        terminal = Terminal(
            id=order.terminal,
            argv=order.argv,
            cwd=order.cwd,
            size=(order.cols, order.rows),
            created_at=time.time(),
            tail=Tail(self._spool / order.terminal),
            note=notes.from_text(order.note, _name(order.argv)),
            keeper=self._keeper,
            told=self._told,
            pipes=order.pipes,
        )
        received: list[int] = []

        def on_reply(reply: Reply, descriptors: tuple[int, ...]) -> None:
            # Here and not after the await: a notice of its exit may come in the same read.
            if isinstance(reply, Started):
                received.extend(descriptors)
                terminal.pid = reply.pid
                self._all[terminal.id] = terminal
                self._opened(terminal)
                self.stirred(terminal)

        try:
            await self._keeper.request(order, Started, on_reply)
        except BaseException:
            self._give_up(terminal, received)
            raise
        return terminal, tuple(received)

    def _give_up(self, terminal: Terminal, received: list[int]) -> None:
        """The start failed, or nobody waits for it any more: leave nothing running."""
        close_all(received)
        if terminal.swept is None:
            self._keeper.post(Stop(self._keeper.number(), terminal.id, 0.0))

    def _adopted(self, state: Kept) -> Terminal:
        tail = Tail(self._spool / state.terminal)
        return Terminal(
            id=state.terminal,
            argv=state.argv,
            cwd=state.cwd,
            size=(state.cols, state.rows),
            created_at=state.created_at,
            tail=tail,
            last_output_at=tail.last_at,
            note=notes.from_text(state.note, _name(state.argv)),
            keeper=self._keeper,
            told=self._told,
            pid=state.pid,
            pipes=state.pipes,
            adopted=True,
        )


def _name(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""


def _new_id() -> str:
    return f"t{secrets.token_hex(5)}"
