"""A line typed into a shell: how far it has come, and how it is interrupted.

Owns what is known of one such line: by the shell's marks, or else by what runs in its terminal. It does not type it, and
does not tell of it (typed.py). It never ends the terminal.
"""

from contextlib import suppress
from dataclasses import dataclass

import anyio

from handrail.gate.tool import CallReport, ReceiptFacts, Refusal
from handrail.store.value import ProcessSeen, SignalSent
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.screen import render
from handrail.terminal.shell_marks import Marks
from handrail.terminal.terminal import Terminal, Typist
from handrail.terminal.thread_pool import AGENTS
from handrail.terminal.wait.wait import quiet, rests, stirring
from handrail.tools.reach import Reach
from handrail.tools.terminals.known import Known

UNFINISHED_SECONDS = 1.5
"""Of quiet, after which a shell that reads again and ran nothing is taken to wait for the rest of the line."""
LOOK_SECONDS = 0.2
"""Between looks at what rings no bell."""
INTERRUPT = b"\x03"
HANDRAIL = Typist(person=False, name="handrail")
"""Who interrupts, for whoever cancelled."""


@dataclass(slots=True, kw_only=True)
class ShellLine:
    """One line under way."""

    known: Known
    terminal: Terminal
    call: CallReport
    reach: Reach
    begin: int
    """Where its output begins; until the shell says so, where the output stood when it was typed."""
    end: int | None = None
    exit_code: int | None = None
    ran: bool = False
    """The shell told that it began."""
    interrupted: bool = False
    took: float = 0.0
    """Seconds."""

    async def finish(self) -> None:
        """Return when it is done; meanwhile hand its call back when it asks. Raises Refusal for an unfinished line."""
        began = anyio.current_time()
        try:
            async with stirring(self.terminal) as stir:
                while not await self._is_done():
                    await self._check_unfinished()
                    self.reach.askings.heed(self.terminal, self.call)
                    is_told = self.ran and self.terminal.asks is None
                    await stir.next(None if is_told else LOOK_SECONDS)
        finally:
            self.took = anyio.current_time() - began

    def catch_up(self) -> None:
        """Note where its output begins, for whoever asks for it before `finish` has come so far."""
        if self.known.nonce and not self.ran:
            marks = Marks(self.known.nonce)
            marks.read_to = self.begin
            marks.catch_up(self.terminal.tail, until=self.begin + 1)
            self._note(marks)

    async def interrupt(self) -> bool:
        """Press Ctrl-C, and say whether it has stopped; the receipt says so, too."""
        grace, stopped = self.reach.means.grace, False
        with anyio.CancelScope(shield=True), anyio.move_on_after(grace + 1.0), suppress(KeeperError):
            if self._may_interrupt():
                await self._press()
                sent = SignalSent(signal="SIGINT", after_ms=0)
                self.call.add_receipt(ReceiptFacts(signals=(sent,)))
            stopped = await self._stops(grace)
        seen = self.terminal.seen
        if not stopped and seen is not None and seen.foreground is not None:
            left = ProcessSeen(pid=seen.foreground.pid, name=seen.foreground.name)
            self.call.add_receipt(ReceiptFacts(processes_left=(left,)))
            self.call.keep_unwinding()
        return stopped

    async def _stops(self, grace: float) -> bool:
        with anyio.move_on_after(grace):
            async with stirring(self.terminal) as stir:
                while not await self._is_done():
                    await stir.next(LOOK_SECONDS)
                return True
        return False

    async def _is_done(self) -> bool:
        left = self.terminal.exit
        marks = await self.reach.marks(self.known)
        if marks is None or marks.at_prompt is None:
            done = await rests(self.terminal)
        else:
            done = self._note(marks)
        if left is not None:  # the line ended the shell itself
            self.exit_code = left.code
        return done or left is not None

    def _note(self, marks: Marks) -> bool:
        """Take over what the shell told of it; whether the shell is at a new prompt."""
        ran = [item for item in marks.commands if item.output >= self.begin]
        is_back = bool(marks.at_prompt) and marks.prompt_at >= self.begin
        if ran:
            self.ran, self.begin = True, ran[0].output
            self.end, self.exit_code = ran[-1].end, ran[-1].exit_code
        elif is_back:
            self.end = marks.prompt_at
        return is_back

    async def _check_unfinished(self) -> None:
        """Raises Refusal when the shell waits for the rest of the line, after giving it up."""
        if self.ran or not self.known.nonce or quiet(self.terminal) < UNFINISHED_SECONDS:
            return
        if not await rests(self.terminal):
            return
        await self._press()
        raise Refusal(
            "The shell told of no command and waits for more: most likely the line is unfinished (an open quote, bracket "
            "or block). It was given up with Ctrl-C; nothing was run. Send it again, whole."
        )

    def _may_interrupt(self) -> bool:
        """A person who has taken the terminal over is not disturbed, unless a person cancels."""
        ended_by = self.call.ended_by
        return self.terminal.taken is None or (ended_by is not None and ended_by.is_person)

    async def _press(self) -> None:
        """Ctrl-C, which reaches a program also where it hides what is typed. Raises KeeperError."""
        offset = self.terminal.tail.end
        await self.terminal.write(INTERRUPT)
        self.terminal.hear_typing(HANDRAIL, INTERRUPT, offset)
        self.interrupted = True


async def keys_of(command: str, terminal: Terminal) -> bytes:
    """A line as a keyboard, or a paste, would send it. Raises Refusal when this shell would take it for something else."""
    if "\n" not in command and "\t" not in command:
        return f"{command}\r".encode()
    shown = await AGENTS.run(render, terminal.tail, *terminal.size)
    drops_tabs = terminal.argv[0].endswith("fish") and "\t" in command
    if shown.bracketed_paste and not drops_tabs:
        return b"\x1b[200~" + command.encode() + b"\x1b[201~\r"
    if "\t" in command or terminal.note.nonce:
        raise Refusal(
            "This shell does not take tabs, or several lines at once, as they are. Nothing was typed: send one line "
            "without tabs."
        )
    return f"{command.rstrip()}\r".replace("\n", "\r").encode()
