"""execute_command with terminal_id: a line typed into a shell that is there already.

Owns how such a line is typed, when it is done, and how it is interrupted. It starts no process and never ends the
terminal. What the shell makes of the line is its own matter: aliases and state may change its meaning.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.gate.tool import Plan, Refusal, Salvage
from handrail.store.event import Caller, Json, ProcessSeen, Result, SignalSent
from handrail.terminal.conditions import quiet, rests
from handrail.terminal.keeper import KeeperError
from handrail.terminal.marks import Command, Marks
from handrail.terminal.screen import render
from handrail.terminal.stir import stirring
from handrail.terminal.terminal import Seen, Terminal, Typist
from handrail.tools.answer import answer
from handrail.tools.asking import question_of
from handrail.tools.commanding import COMPLETED, NO_OUTPUT, ExecuteCommandInput, matching_lines
from handrail.tools.keyboard import bound, open_to, preview, type_to, typing
from handrail.tools.known import Known, of_terminal
from handrail.tools.output import Output, read_output
from handrail.tools.reach import Reach

if TYPE_CHECKING:
    from handrail.gate.call import Call

FIRST_PROMPT_SECONDS = 5.0
"""How long a shell that has just been opened may take to its first prompt."""
UNFINISHED_SECONDS = 1.5
"""Of quiet, after which a shell that reads again and ran nothing is taken to wait for the rest of the line."""
LOOK_SECONDS = 0.2
"""Between looks at a shell that does not mark its commands."""
INTERRUPT = b"\x03"
HANDRAIL = Typist(person=False, name="handrail")
"""Who interrupts, for whoever cancelled."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPlan(Plan):
    """Frozen bytes, and the very shell they are for."""

    known: Known
    terminal: Terminal
    data: bytes
    typist: Typist
    seen: Seen | None
    """As it looked when this was planned."""
    input: ExecuteCommandInput


@dataclass(slots=True)
class Progress:
    """How far a typed line has come."""

    terminal: str
    call: "Call"
    begin: int
    """Where its output begins; until the shell says so, where the output stood when it was typed."""
    end: int | None = None
    exit_code: int | None = None
    ran: bool = False
    """The shell told that it began."""
    took: float = 0.0
    """Seconds."""


class TypedCommands:
    """Runs lines in shells that stay."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._progress: dict[str, Progress] = {}

    async def plan(self, input: ExecuteCommandInput, caller: Caller) -> TypedPlan:
        if input.cwd is not None or input.env:
            raise Refusal(
                "`cwd` and `env` are for a command in a terminal of its own. In this one, type cd or export first."
            )
        if _CONTROLS.search(input.command):
            raise Refusal("The command holds a control character, which a shell takes for a key. Remove it.")
        known = await self._reach.find(input.terminal_id or "")
        terminal = open_to(known, caller)
        await self._check_idle(known, terminal)
        data = await _keys(input.command, terminal)
        return TypedPlan(
            claims=(typing(known, data, caller),),
            preview=preview(known, data),
            bound=bound(known),
            known=known,
            terminal=terminal,
            data=data,
            typist=Typist(person=False, name=caller.client),
            seen=terminal.seen,
            input=input,
        )

    async def run(self, plan: TypedPlan, call: "Call") -> Result:
        terminal = plan.terminal
        self._check_alone(terminal)
        progress = self._progress[call.id] = Progress(terminal.id, call, terminal.tail.end)
        try:
            await self._check_idle(plan.known, terminal)
            return await self._type(plan, progress, call)
        finally:
            del self._progress[call.id]

    async def _type(self, plan: TypedPlan, progress: Progress, call: "Call") -> Result:
        call.terminal = plan.terminal.id
        progress.begin = plan.terminal.tail.end
        began = anyio.current_time()
        await type_to(plan.terminal, plan.seen, plan.data, plan.typist)
        if plan.input.background:
            call.hand_back()
        try:
            await self._attend(plan, progress, call, began)
            return await self._result(plan, progress)
        except anyio.get_cancelled_exc_class():
            await self._interrupt(plan, progress, call)
            raise

    def salvage(self, plan: TypedPlan, call: "Call") -> Salvage | None:
        progress = self._progress.get(call.id)
        if progress is None:
            return None
        data = self._data(plan, progress, self._output(plan, progress))
        if (asks := plan.terminal.asks) is not None:
            data["waiting_for_input"] = question_of(
                asks, plan.terminal.id, f'call wait_for_call with call_id "{call.id}"'
            )
        return Salvage(
            result=answer(str(data["output"]), data, plan.input.response_format),
            message=COMPLETED,
            runs_on=True,
        )

    def _check_alone(self, terminal: Terminal) -> None:
        """Raises Refusal while another call's line is under way there; one that was completed is not waited for."""
        for other in self._progress.values():
            if other.terminal == terminal.id and other.call.outcome is None:
                raise Refusal(
                    f"Terminal {terminal.id} is busy: call {other.call.id} ({other.call.title}) runs in it, so nothing was "
                    "typed. Wait for it with wait_for_call, or run this without terminal_id."
                )

    async def _check_idle(self, known: Known, terminal: Terminal) -> None:
        """Raises Refusal while something runs there."""
        with anyio.move_on_after(FIRST_PROMPT_SECONDS):
            async with stirring(terminal) as stir:
                while terminal.exit is None:
                    marks = await self._reach.marks(known)
                    if marks is None or marks.at_prompt is not None:
                        break
                    await stir.next(1.0)
        marks = await self._reach.marks(known)
        seen = terminal.seen
        runs = marks.running if marks is not None else None
        if runs is None and not (seen is not None and seen.busy):
            return
        name = seen.foreground.name if seen is not None and seen.foreground is not None else "a program"
        what = f"{name} ({runs.line})" if runs is not None and runs.line else name
        raise Refusal(
            f"Terminal {known.id} is busy: {what} runs in it, so nothing was typed. Wait with wait_for_terminal (until "
            "prompt), interrupt it with send_to_terminal (keys: ctrl-c), answer it with send_to_terminal, or run this "
            "without terminal_id."
        )

    async def _attend(self, plan: TypedPlan, progress: Progress, call: "Call", began: float) -> None:
        """Return when the line is done. One that is out of time is interrupted. Raises Refusal."""
        limit = plan.input.timeout_seconds
        try:
            with anyio.fail_after(limit):
                async with stirring(plan.terminal) as stir:
                    while not await self._is_done(plan, progress):
                        self._reach.askings.heed(plan.terminal, call)
                        is_told = progress.ran and plan.terminal.asks is None
                        await stir.next(None if is_told else LOOK_SECONDS)
        except TimeoutError:
            progress.took = anyio.current_time() - began
            stopped = await self._interrupt(plan, progress, call)
            now = "It was interrupted with Ctrl-C" if stopped else "Ctrl-C was sent, but it still runs"
            shown = await self._result(plan, progress)
            raise Refusal(
                f"The command ran out of time after {limit:g} s. {now}; the terminal stays. Its output so far is kept.",
                shown,
            ) from None
        progress.took = anyio.current_time() - began

    async def _is_done(self, plan: TypedPlan, progress: Progress) -> bool:
        terminal, left = plan.terminal, plan.terminal.exit
        marks = await self._reach.marks(plan.known)
        if marks is not None and marks.at_prompt is not None:
            done = _by_marks(marks, progress)
            if not done and left is None:
                await self._check_unfinished(terminal, marks, progress)
        else:
            done = await rests(terminal)
        if left is not None:  # the line ended the shell itself
            progress.exit_code = left.code
        return done or left is not None

    async def _check_unfinished(self, terminal: Terminal, marks: Marks, progress: Progress) -> None:
        """Raises Refusal when the shell waits for the rest of the line, after giving it up."""
        if progress.ran or quiet(terminal) < UNFINISHED_SECONDS:
            return
        if not await rests(terminal):
            return
        await _press(terminal)
        raise Refusal(
            "The shell told of no command and waits for more: most likely the line is unfinished (an open quote, bracket "
            "or block). It was given up with Ctrl-C; nothing was run. Send it again, whole."
        )

    async def _interrupt(self, plan: TypedPlan, progress: Progress, call: "Call") -> bool:
        """Ctrl-C, and whether it helped; says so in the receipt. The terminal itself goes on."""
        grace = self._reach.means.grace
        stopped = False
        with anyio.CancelScope(shield=True), anyio.move_on_after(grace + 1.0), suppress(KeeperError):
            if _may_interrupt(plan.terminal, call):
                await _press(plan.terminal)
                sent = SignalSent(signal="SIGINT", after_ms=0)
                call.receipt = replace(call.receipt, signals=(*call.receipt.signals, sent))
            stopped = await self._has_stopped(plan, progress, grace)
        seen = plan.terminal.seen
        if not stopped and seen is not None and seen.foreground is not None:
            left = ProcessSeen(pid=seen.foreground.pid, name=seen.foreground.name)
            call.receipt = replace(call.receipt, processes_left=(left,))
            call.unwinding = True  # so that nobody is told it has stopped
        return stopped

    async def _has_stopped(self, plan: TypedPlan, progress: Progress, grace: float) -> bool:
        with anyio.move_on_after(grace):
            async with stirring(plan.terminal) as stir:
                while not await self._is_idle(plan, progress):
                    await stir.next(LOOK_SECONDS)
                return True
        return False

    async def _is_idle(self, plan: TypedPlan, progress: Progress) -> bool:
        if plan.terminal.exit is not None:
            return True
        marks = await self._reach.marks(plan.known)
        if marks is not None and marks.at_prompt is not None:
            return _by_marks(marks, progress)
        return await rests(plan.terminal)

    async def _result(self, plan: TypedPlan, progress: Progress) -> Result:
        asked = plan.input
        with suppress(KeeperError):  # it has ended, and is where it was
            await plan.terminal.look()
        output = await anyio.to_thread.run_sync(self._output, plan, progress)
        output = await matching_lines(asked, plan.terminal.tail, output, progress.begin, progress.end)
        data = self._data(plan, progress, output)
        data["exit_code"] = progress.exit_code
        data["duration_ms"] = round(progress.took * 1000)
        ended = (
            f"exit code {progress.exit_code}"
            if progress.exit_code is not None
            else "its exit code is not known"
        )
        return answer(f"{data['output']}\n[{ended}, {progress.took:.1f} s]", data, asked.response_format)

    def _output(self, plan: TypedPlan, progress: Progress) -> Output:
        asked = plan.input
        return read_output(
            plan.terminal.tail,
            asked.output_head,
            asked.output_tail,
            begin=progress.begin,
            end=progress.end,
        )

    def _data(self, plan: TypedPlan, progress: Progress, output: Output) -> Json:
        return {
            "exit_code": None,
            "output": output.text if output.captured else NO_OUTPUT,
            "output_captured": output.captured,
            "output_bytes": output.bytes,
            "output_left_out": output.left_out,
            "cwd": of_terminal(plan.terminal).cwd,
            "terminal_id": plan.terminal.id,
        }


def _may_interrupt(terminal: Terminal, call: "Call") -> bool:
    """A person who has taken the terminal over is not disturbed, unless a person cancels."""
    by_person = call.outcome is not None and call.outcome.by not in ("client", "operation", "handrail")
    return terminal.taken is None or by_person


async def _press(terminal: Terminal) -> None:
    """Ctrl-C, which reaches a program also where it hides what is typed. Raises KeeperError."""
    offset = terminal.tail.end
    await terminal.write(INTERRUPT)
    terminal.hear_typing(HANDRAIL, INTERRUPT, offset)


def _by_marks(marks: Marks, progress: Progress) -> bool:
    """Whether the shell is at a new prompt; notes what it told of the line."""
    ran = [item for item in marks.commands if item.output >= progress.begin]
    if ran:
        _note(progress, ran)
    is_back = bool(marks.at_prompt) and marks.prompt_at >= progress.begin
    if is_back and not ran:
        progress.end = marks.prompt_at
    return is_back


def _note(progress: Progress, ran: list[Command]) -> None:
    progress.ran, progress.begin = True, ran[0].output
    progress.end, progress.exit_code = ran[-1].end, ran[-1].exit_code


async def _keys(command: str, terminal: Terminal) -> bytes:
    """The line as a keyboard, or a paste, would send it."""
    if "\n" not in command and "\t" not in command:
        return f"{command}\r".encode()
    shown = await anyio.to_thread.run_sync(render, terminal.tail, *terminal.size)
    drops_tabs = terminal.argv[0].endswith("fish") and "\t" in command
    if shown.bracketed_paste and not drops_tabs:
        return b"\x1b[200~" + command.encode() + b"\x1b[201~\r"
    if "\t" in command or terminal.note.nonce:
        raise Refusal(
            "This shell does not take tabs, or several lines at once, as they are. Nothing was typed: send one line "
            "without tabs."
        )
    return f"{command.rstrip()}\r".replace("\n", "\r").encode()
