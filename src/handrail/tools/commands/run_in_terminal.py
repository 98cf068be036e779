"""execute_command with terminal_id: type a line into an open shell and wait until it is done.

The shell's marks show where the output starts and ends, and the exit code. Without marks, the line is done
when the shell rests. Aliases and other shell state may change the meaning of a line.
"""

import re
from contextlib import suppress

import anyio
import anyio.to_thread

from handrail.gate.tool import CallReport, Plan, ReceiptFacts, Refusal, Salvage, UnknownEnd
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Json, ProcessSeen, Result, SignalSent
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.screen import render_screen
from handrail.terminal.shell_marks import Marks, MarksReader
from handrail.terminal.terminal import InputSender, Seen, Terminal
from handrail.terminal.thread_pool import AGENTS
from handrail.terminal.wait.wait import is_at_rest, quiet_seconds, watch_changes
from handrail.tools.commands.command_claims import typed_line_claims
from handrail.tools.commands.command_input import COMPLETED, NO_OUTPUT, ExecuteCommandInput, matching_lines
from handrail.tools.commands.command_output import Output, read_output
from handrail.tools.results import answer
from handrail.tools.terminals.get_terminal_buffer import mask_result
from handrail.tools.terminals.input_requests import question_of
from handrail.tools.terminals.send_to_terminal import (
    check_can_type,
    type_to,
    typing_bound,
    typing_claim,
    typing_preview,
)
from handrail.tools.terminals.terminal_lookup import FoundTerminal, of_terminal
from handrail.tools.tool_context import ToolContext

UNFINISHED_SECONDS = 1.5
"""Seconds without output after which an idle shell that ran nothing is taken to wait for more input."""
LOOK_SECONDS = 0.2
"""Poll interval for states without a notification."""
INTERRUPT = b"\x03"
HANDRAIL = InputSender(person=False, name="handrail")
"""The typist recorded for an interrupt when a call is cancelled."""


@dataclass(slots=True, kw_only=True)
class ShellLine:
    """One line that runs in a shell."""

    known: FoundTerminal
    terminal: Terminal
    call: CallReport
    context: ToolContext
    begin: int
    """Offset of its output; until the shell marks the start, the offset when it was typed."""
    end: int | None = None
    exit_code: int | None = None
    ran: bool = False
    """The shell has marked its start."""
    interrupted: bool = False
    took: float = 0.0
    """Seconds."""

    async def finish(self) -> None:
        """Wait until the line is done; hand its call back on an input request.

        Raises Refusal when the line is incomplete.
        """
        began = anyio.current_time()
        try:
            async with watch_changes(self.terminal) as stir:
                while not await self._is_done():
                    await self._check_unfinished()
                    self.context.askings.heed(self.terminal, self.call)
                    is_told = self.ran and self.terminal.asks is None
                    await stir.next(None if is_told else LOOK_SECONDS)
        finally:
            self.took = anyio.current_time() - began

    def catch_up(self) -> None:
        """Read the marks up to now, for a salvage before `finish` has seen them."""
        if self.known.nonce and not self.ran:
            reader = MarksReader(self.known.nonce, read_to=self.begin)
            reader.catch_up(self.terminal.tail, until=self.begin + 1)
            self._note(reader.marks)

    async def interrupt(self) -> bool:
        """Press Ctrl-C, add it to the receipt, and return whether the line stopped."""
        grace, stopped = self.context.settings.grace, False
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
            async with watch_changes(self.terminal) as stir:
                while not await self._is_done():
                    await stir.next(LOOK_SECONDS)
                return True
        return False

    async def _is_done(self) -> bool:
        left = self.terminal.exit
        marks = await self.context.marks(self.known)
        if marks is None or marks.at_prompt is None:
            done = await is_at_rest(self.terminal)
        else:
            done = self._note(marks)
        if left is not None:  # the line ended the shell
            self.exit_code = left.code
        return done or left is not None

    def _note(self, marks: Marks) -> bool:
        """Copy offsets and exit code from the marks; return whether the shell is at a new prompt."""
        ran = [item for item in marks.commands if item.output >= self.begin]
        is_back = bool(marks.at_prompt) and marks.prompt_at >= self.begin
        if ran:
            self.ran, self.begin = True, ran[0].output
            self.end, self.exit_code = ran[-1].end, ran[-1].exit_code
        elif is_back:
            self.end = marks.prompt_at
        return is_back

    async def _check_unfinished(self) -> None:
        """If the shell waits for the rest of the line, press Ctrl-C and raise Refusal."""
        if self.ran or not self.known.nonce or quiet_seconds(self.terminal) < UNFINISHED_SECONDS:
            return
        if not await is_at_rest(self.terminal):
            return
        await self._press()
        raise Refusal(
            "The shell told of no command and waits for more: most likely the line is unfinished (an open quote, bracket "
            "or block). It was given up with Ctrl-C; nothing was run. Send it again, whole."
        )

    def _may_interrupt(self) -> bool:
        """Only a person may interrupt a terminal that a person has taken over."""
        ended_by = self.call.ended_by
        return self.terminal.taken is None or (ended_by is not None and ended_by.is_person)

    async def _press(self) -> None:
        """Press Ctrl-C, which is allowed even at a password prompt. Raises KeeperError."""
        offset = self.terminal.tail.end
        await self.terminal.write(INTERRUPT)
        self.terminal.hear_typing(HANDRAIL, INTERRUPT, offset)
        self.interrupted = True


async def encode_keys(command: str, terminal: Terminal) -> bytes:
    """Encode a line as keys or as a bracketed paste.

    Raises Refusal when this shell would misread tabs or newlines.
    """
    if "\n" not in command and "\t" not in command:
        return f"{command}\r".encode()
    drops_tabs = terminal.argv[0].endswith("fish") and "\t" in command
    if not drops_tabs and await _takes_paste(terminal):
        return b"\x1b[200~" + command.encode() + b"\x1b[201~\r"
    if "\t" in command or terminal.note.nonce:
        raise Refusal(
            "This shell does not take tabs, or several lines at once, as they are. Nothing was typed: send one line "
            "without tabs."
        )
    return f"{command.rstrip()}\r".replace("\n", "\r").encode()


async def _takes_paste(terminal: Terminal) -> bool:
    """Whether bracketed paste is on. A shell turns it on after its prompt mark: wait until it waits for keys."""
    with anyio.move_on_after(PROMPT_SECONDS):
        async with watch_changes(terminal) as stir:
            while True:
                waits = not terminal.note.nonce or terminal.exit is not None or await is_at_rest(terminal)
                # Rendered after the check, so that it shows all that the shell printed before it waited.
                shown = await AGENTS.run(render_screen, terminal.tail, *terminal.size)
                if waits or shown.bracketed_paste:
                    return shown.bracketed_paste
                await stir.next(LOOK_SECONDS)
    return False


PROMPT_SECONDS = 5.0
"""Bounds the wait for a prompt that is due: of a shell that was just opened, or that still handles its last input."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPlan(Plan):
    """The bytes to type, and the shell they are for."""

    known: FoundTerminal
    terminal: Terminal
    data: bytes
    typist: InputSender
    seen: Seen | None
    """The terminal's state when the call was planned."""
    input: ExecuteCommandInput


class TypedCommands:
    """Runs lines in open shells."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._lines: dict[str, ShellLine] = {}
        """Running lines, by call id."""

    async def plan(self, input: ExecuteCommandInput, caller: Caller) -> TypedPlan:
        if input.cwd is not None or input.env:
            raise Refusal(
                "`cwd` and `env` are for a command in a terminal of its own. In this one, type cd or export first."
            )
        if _CONTROLS.search(input.command):
            raise Refusal("The command holds a control character, which a shell takes for a key. Remove it.")
        known = await self._context.find(input.terminal_id or "")
        terminal = check_can_type(known, caller)
        await self._check_idle(known, terminal)
        data = await encode_keys(input.command, terminal)
        return TypedPlan(
            claims=typed_line_claims(typing_claim(known, data, caller), input.command),
            preview=typing_preview(known, data),
            bound=typing_bound(known, data),
            known=known,
            terminal=terminal,
            data=data,
            typist=InputSender(person=False, name=caller.client),
            seen=terminal.seen,
            input=input,
        )

    async def run(self, plan: TypedPlan, call: CallReport) -> Result:
        self._check_alone(plan.terminal)
        line = self._lines[call.id] = ShellLine(
            known=plan.known,
            terminal=plan.terminal,
            call=call,
            context=self._context,
            begin=plan.terminal.tail.end,
        )
        try:
            await self._check_idle(plan.known, plan.terminal)
            return await self._type(plan, line, call)
        finally:
            del self._lines[call.id]

    def is_running(self, call: CallReport) -> bool:
        """Whether the line of a call runs in a shell that lives."""
        line = self._lines.get(call.id)
        return line is not None and line.terminal.exit is None

    async def find_work(self, input: ExecuteCommandInput, call: CallReport) -> TypedPlan | None:
        """The plan of a line that an earlier daemon typed, while its shell still runs it; else None."""
        terminal = self._context.terminals.live.get(input.terminal_id or "")
        if terminal is None or await self._running_from(terminal, input) is None:
            return None
        call.use_terminal(terminal.id)
        return TypedPlan(
            claims=(),
            bound={},
            known=of_terminal(terminal),
            terminal=terminal,
            data=b"",
            typist=InputSender(person=False, name=call.caller.client),
            seen=terminal.seen,
            input=input,
        )

    async def rejoin(self, plan: TypedPlan, call: CallReport) -> Result:
        begin = await self._running_from(plan.terminal, plan.input)
        line = self._lines[call.id] = ShellLine(
            known=plan.known,
            terminal=plan.terminal,
            call=call,
            context=self._context,
            begin=plan.terminal.tail.end if begin is None else begin,
        )
        try:
            return await self._finish(plan, line)
        finally:
            del self._lines[call.id]

    async def _running_from(self, terminal: Terminal, input: ExecuteCommandInput) -> int | None:
        """The offset where the output of this line begins; None if the shell does not run it any more.

        A shell without marks does not show which line it runs. Then a busy shell that an agent owns is taken to
        run this one, and only later output counts.
        """
        marks = await self._context.marks(of_terminal(terminal))
        if marks is not None and marks.at_prompt is not None:
            runs = marks.running
            is_this = runs is not None and (not runs.line or runs.line.strip() == input.command.strip())
            return runs.output if runs is not None and is_this else None
        with suppress(KeeperError):
            if not terminal.note.owner.person and (await terminal.look()).busy:
                return terminal.tail.end
        return None

    def salvage(self, plan: TypedPlan, call: CallReport) -> Salvage | None:
        line = self._lines.get(call.id)
        if line is None:
            return None
        line.catch_up()
        data = _data(line, _output(plan.input, line))
        if (asks := plan.terminal.asks) is not None:
            then = f'call wait_for_call with call_id "{call.id}"'
            data["waiting_for_input"] = question_of(asks, plan.terminal.id, then)
        return Salvage(
            result=mask_result(
                answer(str(data["output"]), data, plan.input.response_format), plan.known.nonce
            ),
            message=COMPLETED,
            runs_on=True,
        )

    def _check_alone(self, terminal: Terminal) -> None:
        """Raises Refusal while a line of another call runs there; a force-completed call does not count."""
        for other in self._lines.values():
            if other.terminal is terminal and other.call.ended_by is None:
                raise Refusal(
                    f"Terminal {terminal.id} is busy: call {other.call.id} ({other.call.title}) runs in it, so nothing was "
                    "typed. Wait for it with wait_for_call, or run this without terminal_id."
                )

    async def _check_idle(self, known: FoundTerminal, terminal: Terminal) -> None:
        """Raises Refusal while a program runs there."""
        with anyio.move_on_after(PROMPT_SECONDS):
            async with watch_changes(terminal) as stir:
                while terminal.exit is None:
                    marks = await self._context.marks(known)
                    if marks is None or not await _is_prompt_due(marks, terminal):
                        break
                    await stir.next(LOOK_SECONDS)
        marks = await self._context.marks(known)
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

    async def _type(self, plan: TypedPlan, line: ShellLine, call: CallReport) -> Result:
        call.use_terminal(plan.terminal.id)
        line.begin = plan.terminal.tail.end
        await type_to(plan.terminal, plan.seen, plan.data, plan.typist)
        if plan.input.background:
            call.hand_back()
        return await self._finish(plan, line)

    async def _finish(self, plan: TypedPlan, line: ShellLine) -> Result:
        """Wait for the line and build the result. Raises UnknownEnd if its end was not observed."""
        try:
            with anyio.fail_after(plan.input.timeout_seconds):
                await line.finish()
        except TimeoutError:
            raise await _out_of_time(plan.input, line) from None
        except anyio.get_cancelled_exc_class():
            await line.interrupt()
            raise
        result, left = await _result(plan.input, line), line.terminal.exit
        if left is not None and left.lost:
            raise UnknownEnd(unknown_end(left.lost), result)
        return result


def unknown_end(why: str) -> str:
    """The sentence about a command whose exit was not observed."""
    return f"Its end is unknown: {why} Look at what it did before you ask for it again."


async def _is_prompt_due(marks: Marks, terminal: Terminal) -> bool:
    """Whether the shell is still on its way to the prompt: it starts, draws it, or handles input such as Ctrl-C.

    A line typed before that prompt would take it for the end of its own command.
    """
    if not marks.at_prompt:
        return marks.at_prompt is None
    if terminal.seen is not None and terminal.seen.busy:  # it may have changed since
        with suppress(KeeperError):
            if (await terminal.look()).busy:
                return True
    typed_at = terminal.last_input
    return typed_at is not None and typed_at > marks.prompt_at and not await is_at_rest(terminal)


async def _out_of_time(params: ExecuteCommandInput, line: ShellLine) -> Refusal:
    took, stopped = line.took, await line.interrupt()
    line.took = took
    done = "It was interrupted with Ctrl-C" if stopped else "Ctrl-C was sent, but it still runs"
    if not line.interrupted:
        done = "A person has taken the terminal over, so it was not interrupted"
    sentence = f"The command ran out of time after {params.timeout_seconds:g} s. {done}; the terminal stays."
    return Refusal(f"{sentence} Its output so far is kept.", await _result(params, line))


async def _result(params: ExecuteCommandInput, line: ShellLine) -> Result:
    with suppress(KeeperError):  # it has ended; keep its last known folder
        await line.terminal.look()
    output = await anyio.to_thread.run_sync(_output, params, line)
    output = await matching_lines(params, line.terminal.tail, output, line.begin, line.end)
    data = _data(line, output) | {"exit_code": line.exit_code, "duration_ms": round(line.took * 1000)}
    code = "its exit code is not known" if line.exit_code is None else f"exit code {line.exit_code}"
    result = answer(f"{data['output']}\n[{code}, {line.took:.1f} s]", data, params.response_format)
    return mask_result(result, line.known.nonce)


def _output(params: ExecuteCommandInput, line: ShellLine) -> Output:
    tail = line.terminal.tail
    return read_output(tail, params.output_head, params.output_tail, begin=line.begin, end=line.end)


def _data(line: ShellLine, output: Output) -> Json:
    return {
        "exit_code": None,
        "output": output.text if output.captured else NO_OUTPUT,
        "output_captured": output.captured,
        "output_bytes": output.bytes,
        "output_left_out": output.left_out,
        "cwd": of_terminal(line.terminal).cwd,
        "terminal_id": line.terminal.id,
    }
