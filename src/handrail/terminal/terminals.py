"""All terminals of the daemon, by id: open them, adopt them after a restart, mark them lost with the keeper.

Does not write the journal: the daemon passes callbacks, which are called synchronously and in order and must not block.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from handrail.keeper.protocol import (
    NO_REPLY,
    Attached,
    CheckedProgram,
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
from handrail.terminal.input.keys import is_typing
from handrail.terminal.input.typing_history import TypingHistory
from handrail.terminal.keeper_client import close_all
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import (
    InputSender,
    Terminal,
    TerminalCallbacks,
    command_note,
    note_from_text,
    note_to_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from handrail.keeper.protocol import Notice, Reply
    from handrail.terminal.keeper_client import Keeper
    from handrail.terminal.terminal import TerminalNote

    Callback = Callable[[Terminal], None]
    Typed = Callable[[Terminal, str, bool, str | None, int], None]

__all__ = ["CheckedProgram", "Terminals"]

MAX_BYTES = 64 * 1024 * 1024
MAX_LINES = 1_000_000
"""Output kept per terminal, a bound on disk space; older output is dropped."""
RELEASED_MAX = 64
"""Released terminals that stay in memory, because their output is often read next."""
WINDOW = "a person in a window of their own"


def _ignore(*_: object) -> None:
    """The default callback."""


class Terminals:
    """The running terminals, and the ended ones that are not forgotten yet."""

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
        """`ended` is called when the leader exits, `swept` when its whole process tree has ended (or is lost), and
        `lost` when the keeper is lost, after `ended` and `swept` for its terminals. Terminals that ended while no
        daemon ran are reported on adoption. `typed` gets the typist's name, whether it is a person, the text (None
        when the terminal did not show it), and the output offset."""
        self._keeper = keeper
        self._spool = spool
        self._opened, self._ended, self._swept, self._lost = opened, ended, swept, lost
        self._typing = TypingHistory(typed)
        self._callbacks = TerminalCallbacks(
            typed=self._note_input, taken=taken, released=released, asked=asked, went_on=went_on
        )
        self.stirred: Callback = _ignore
        """Called when a terminal is opened, prints output, or gets input; set by input detection."""
        self.orphaned: Callable[[Sequence[str]], None] = _ignore
        """Called with terminals that were, or may have been, lost with their keeper; set by the daemon, to look for
        survivors."""
        self._all: dict[str, Terminal] = {}
        self._released_terminals: dict[str, Terminal] = {}
        keeper.listener = self

    async def run(self) -> None:
        """Record the typing history and return control to agents after a person's typing; until cancelled."""
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
        """A recently released terminal, which no longer changes; None when it is only in the database."""
        return self._released_terminals.get(id)

    def tail(self, id: str) -> Tail:
        """The output of any terminal, including terminals that ended long ago."""
        terminal = self._all.get(id)
        return Tail(self._spool / id, closed=True) if terminal is None else terminal.tail

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
        note: TerminalNote | None = None,
        cwd_id: tuple[int, int] | None = None,
        programs: Sequence[CheckedProgram] = (),
        exact: Sequence[str] = (),
    ) -> Terminal:
        """Start a program in a PTY of this size (columns, rows). Raises KeeperError when it cannot run.

        `cwd_id` is the device and inode that `cwd` must still have when the program starts. `programs` must still be
        the same files; with `exact`, the first of them is executed by its descriptor with these arguments.
        """
        request = Start(
            self._keeper.number(),
            id or _new_id(),
            tuple(argv),
            cwd,
            dict(env),
            *size,
            cap_bytes=cap_bytes,
            cap_lines=cap_lines,
            grace=grace,
            note=note_to_text(note or command_note(_program_name(argv))),
            cwd_id=cwd_id,
            programs=tuple(programs),
            exact=tuple(exact),
        )
        terminal, _ = await self._start(request)
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
        """Start a program on pipes instead of a PTY.

        Returns the terminal and the descriptors of stdin, stdout and stderr. The caller closes them; they do not
        survive this daemon.
        """
        request = Start(
            self._keeper.number(), id or _new_id(), tuple(argv), cwd, dict(env), pipes=True, grace=grace
        )
        terminal, (stdin, stdout, stderr) = await self._start(request)
        return terminal, (stdin, stdout, stderr)

    async def forget(self, id: str, *, delete: bool = False) -> None:
        """Drop an ended terminal, after its end is journaled; with `delete`, its output too."""
        await self._keeper.request(Forget(self._keeper.number(), id, delete), Done)
        self._all.pop(id, None)

    def release(self, id: str) -> None:
        """Drop an ended terminal without waiting for the keeper's reply; its output stays on disk."""
        terminal = self._all.get(id)
        if terminal is not None and terminal.swept is not None:
            del self._all[id]
            self._keeper.post(Forget(NO_REPLY, id))
            if not terminal.pipes:
                self._released_terminals[id] = terminal
            if len(self._released_terminals) > RELEASED_MAX:
                del self._released_terminals[next(iter(self._released_terminals))]

    def deleted(self, id: str) -> None:
        """Drop a released terminal from memory, before its output is deleted."""
        self._released_terminals.pop(id, None)

    # Listener: notices from the keeper

    def adopt(self, kept: list[Kept]) -> None:
        for state in kept:
            terminal = self._all.get(state.terminal)
            if terminal is None:
                terminal = self._all[state.terminal] = self._adopt_terminal(state)
            terminal.unrecorded = state.unrecorded
            terminal.size = (state.cols, state.rows)
            terminal.attached = state.attached
            terminal.ring()
            terminal.tail.ring()
            self.stirred(terminal)
            self._note_exit(terminal, state.exit)
            self._note_sweep(terminal, state.report)

    def hear(self, notice: Notice) -> None:
        if isinstance(notice, Kept | Replaced):
            return
        terminal = self._all.get(notice.terminal)
        if terminal is not None:
            self._handle(terminal, notice)
        elif isinstance(notice, Swept):  # its start was abandoned before the reply
            self._keeper.post(Forget(NO_REPLY, notice.terminal, delete=True))

    def lost(self, why: str) -> None:
        self.orphaned([name for name, terminal in self._all.items() if terminal.swept is None])
        for terminal in list(self._all.values()):
            self._note_exit(terminal, Exit(lost=why))
            self._note_sweep(terminal, Report("keeper gone"))
        self._lost(why)

    def _handle(
        self,
        terminal: Terminal,
        notice: Grown | Unrecorded | Exited | Swept | Overheard | Resized | Attached,
    ) -> None:
        match notice:
            case Grown():
                self._note_output(terminal)
            case Unrecorded(_, _, why):
                terminal.unrecorded = why
            case Exited(_, exit, _):
                self._note_output(terminal)
                self._note_exit(terminal, exit)
            case Swept(_, report, _):
                self._note_sweep(terminal, report)
            case Overheard(_, data, secret, size):
                self._note_window_input(terminal, None if secret else data, size)
            case Resized(_, cols, rows):
                terminal.resized(cols, rows)
            case Attached(_, attached):
                terminal.attached = attached
                terminal.ring()

    def _note_output(self, terminal: Terminal) -> None:
        terminal.last_output_at = time.time()
        terminal.tail.ring()
        self.stirred(terminal)

    def _note_window_input(self, terminal: Terminal, data: bytes | None, size: int) -> None:
        owner = terminal.note.owner
        typist = InputSender(person=True, name=owner.name if owner.person else WINDOW)
        if data is None or is_typing(data):
            terminal.heed(typist)
        terminal.hear_typing(typist, data, size)

    def _note_input(self, terminal: Terminal, typist: InputSender, data: bytes | None, offset: int) -> None:
        self._typing.hear(terminal, typist, data, offset)
        self.stirred(terminal)

    def _note_exit(self, terminal: Terminal, exit: Exit | None) -> None:
        if exit is not None and terminal.exit is None:
            terminal.leave(exit)
            self._typing.ring()
            self.stirred(terminal)
            self._ended(terminal)

    def _note_sweep(self, terminal: Terminal, report: Report | None) -> None:
        if report is not None and terminal.swept is None:
            terminal.sweep(report)
            terminal.tail.close()
            self._swept(terminal)

    async def _start(self, request: Start) -> tuple[Terminal, tuple[int, ...]]:
        terminal = Terminal(
            id=request.terminal,
            argv=request.argv,
            cwd=request.cwd,
            size=(request.cols, request.rows),
            created_at=time.time(),
            tail=Tail(self._spool / request.terminal),
            note=note_from_text(request.note, _program_name(request.argv)),
            keeper=self._keeper,
            callbacks=self._callbacks,
            pipes=request.pipes,
        )
        received: list[int] = []

        def on_reply(reply: Reply, descriptors: tuple[int, ...]) -> None:
            # Register here, not after the await: a notice of its exit may come in the same read.
            if isinstance(reply, Started):
                received.extend(descriptors)
                terminal.pid = reply.pid
                self._all[terminal.id] = terminal
                self._opened(terminal)
                self.stirred(terminal)

        try:
            await self._keeper.request(request, Started, on_reply)
        except BaseException:
            self._abandon_start(terminal, received)
            raise
        return terminal, tuple(received)

    def _abandon_start(self, terminal: Terminal, received: list[int]) -> None:
        """The start failed or its caller was cancelled: stop the program, if it runs."""
        close_all(received)
        if terminal.swept is None:
            self._keeper.post(Stop(self._keeper.number(), terminal.id, 0.0))

    def _adopt_terminal(self, state: Kept) -> Terminal:
        tail = Tail(self._spool / state.terminal)
        return Terminal(
            id=state.terminal,
            argv=state.argv,
            cwd=state.cwd,
            size=(state.cols, state.rows),
            created_at=state.created_at,
            tail=tail,
            last_output_at=tail.last_at,
            note=note_from_text(state.note, _program_name(state.argv)),
            keeper=self._keeper,
            callbacks=self._callbacks,
            pid=state.pid,
            pipes=state.pipes,
            adopted=True,
        )


def _program_name(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""


def _new_id() -> str:
    return f"t{secrets.token_hex(5)}"
