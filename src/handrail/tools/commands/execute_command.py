"""execute_command: run a shell line in a new terminal, or type it into an existing one.

Plans the command, waits for its exit, and stops the whole process tree on cancel or timeout. The keeper
starts the processes.
"""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread

from handrail.gate.shell.shell_parser import Line
from handrail.gate.tool import CallReport, Plan, ReceiptFacts, Refusal, Salvage, Tool, UnknownEnd
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, CommandPreview, Json, Owner, Result
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.open_shell import OWN_ID
from handrail.terminal.terminal import Exit, Report, Terminal, TerminalNote
from handrail.terminal.terminals import CheckedProgram
from handrail.terminal.wait.wait import LIKELY_SECONDS
from handrail.tools.commands.command_claims import (
    command_claims,
    describe_variables,
    read_line,
    unsafe_variables,
)
from handrail.tools.commands.command_input import (
    COMPLETED,
    NO_OUTPUT,
    ExecuteCommandInput,
    ExecuteCommandOutput,
    check,
    matching_lines,
)
from handrail.tools.commands.command_output import Output, read_output
from handrail.tools.commands.programs import ExactStart, Programs, find_exact_start, find_programs
from handrail.tools.commands.reading_line import has_plain_environment, without_index_writes
from handrail.tools.commands.run_in_terminal import TypedCommands, TypedPlan, unknown_end
from handrail.tools.commands.secret_search import find_walker
from handrail.tools.results import answer, facts_of, printable_line
from handrail.tools.terminals.input_requests import question_of
from handrail.tools.tool_context import PLAIN, ToolContext, hash_environment
from handrail.tools.workspace import Place

SWEEP_SECONDS = 0.05
"""Wait for leftover processes to be stopped; if that takes longer, the result does not wait for it."""
STOP_BOUND = 10.0
"""Seconds after the grace period before a stop gives up and reports the survivors."""
LONG_LINE = 2000
"""Characters parsed on the event loop, in a few milliseconds; a longer line is parsed in a thread."""
COLUMNS, ROWS = 120, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlan(Plan):
    """The argv to run, with its folder and environment."""

    argv: tuple[str, ...]
    cwd: str
    cwd_id: tuple[int, int] | None
    """Device and inode of the folder: the command starts there even if the path is replaced."""
    env: Mapping[str, str]
    programs: Programs
    exact: ExactStart | None
    """Set if the line is one program, which is then executed without a shell in between."""
    input: ExecuteCommandInput

    @property
    def checked_programs(self) -> tuple[CheckedProgram, ...]:
        """All programs of the line, the exactly executed program first."""
        first = () if self.exact is None else (self.exact.program,)
        return tuple(dict.fromkeys((*first, *self.programs.checked)))


class ExecuteCommand(Tool[ExecuteCommandInput, CommandPlan | TypedPlan]):
    """Run a shell line in a terminal that the person can watch."""

    name = "execute_command"
    title = "Run command"
    description = (
        "Run a shell command on the person's machine, in a terminal they can watch. Returns its output (head and "
        "tail), exit code and duration. A command that outlasts wait_seconds (45 by default) is handed back as "
        "`running` with its call_id and goes on: ask wait_for_call. One that waits for input is handed back as "
        "`waiting_for_input`: answer with send_to_terminal, then ask wait_for_call. For servers and watchers set "
        "background. Whatever the command leaves running when it exits is ended. With terminal_id the line is typed into "
        "that shell instead, which keeps its directory and variables. The person may be asked first, and may cancel or "
        "complete it."
    )
    input = ExecuteCommandInput
    output = ExecuteCommandOutput
    destructive = True
    answer_inputs = frozenset(
        {"wait_seconds", "background", "output_head", "output_tail", "output_grep", "response_format"}
    )

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._terminals = context.terminals
        self._settings = context.settings
        self._typed = TypedCommands(context)

    def display(self, input: ExecuteCommandInput) -> str:
        return printable_line(input.command)

    def patience(self, input: ExecuteCommandInput) -> float | None:
        return input.wait_seconds

    async def plan(self, input: ExecuteCommandInput, caller: Caller) -> CommandPlan | TypedPlan:
        check(input)
        if input.terminal_id is not None:
            return await self._typed.plan(input, caller)
        place = self._context.workspace(caller).place(input.cwd or caller.workspace or "/")
        os.close(place.open_folder())
        shell = _shell(self._settings.environment)
        env = {**self._settings.environment, **PLAIN, **input.env}
        line, search = await _read(input.command), env.get("PATH", os.defpath)
        programs = find_programs(line, place.path, search)
        preview = CommandPreview(
            command=input.command, cwd=place.path, program=shell, environment=describe_variables(input.env)
        )
        bound: Json = {
            **place.bound,
            "program": shell,
            "programs": programs.bound,
            "environment": hash_environment(env),
        }
        claims = await self._claims(line, place, caller, env, input)
        return CommandPlan(
            claims=claims,
            preview=preview,
            bound=bound,
            argv=(shell, "-c", "--", input.command),  # the command may start with a dash
            cwd=place.path,
            cwd_id=place.identity,
            env=without_index_writes(env) if all(claim.reads for claim in claims) else env,
            programs=programs,
            exact=find_exact_start(line, programs, env),
            input=input,
        )

    async def _claims(
        self, line: Line, place: Place, caller: Caller, env: Mapping[str, str], input: ExecuteCommandInput
    ) -> tuple[Claim, ...]:
        """The claims; in a thread if that may take long, to keep the event loop free."""
        claim = partial(
            command_claims,
            line,
            place,
            self._context.workspace(caller),
            env.get("PATH", os.defpath),
            unsafe_variables(input.env),
            plain_environment=has_plain_environment(env),
        )
        is_slow = len(input.command) > LONG_LINE or any(find_walker(part.words) for part in line.parts)
        return await anyio.to_thread.run_sync(claim) if is_slow else claim()

    async def run(self, plan: CommandPlan | TypedPlan, call: CallReport) -> Result:
        if isinstance(plan, TypedPlan):
            return await self._typed.run(plan, call)
        call.use_terminal(terminal_of(call.id))
        began = anyio.current_time()
        terminal = await self._open(plan, call)
        if plan.input.background:
            call.hand_back()
        return await self._attend_or_stop(terminal, plan, call, began)

    def outlives_daemon(self, call: CallReport) -> bool:
        if isinstance(call.plan, TypedPlan):
            return self._typed.is_running(call)
        terminal = self._terminals.get(call.terminal or "")
        return terminal is not None and terminal.exit is None

    async def find_work(self, input: ExecuteCommandInput, call: CallReport) -> CommandPlan | TypedPlan | None:
        if input.terminal_id is not None:
            return await self._typed.find_work(input, call)
        terminal = self._terminals.get(terminal_of(call.id))
        if terminal is None:  # its keeper may have been killed before the journal had the terminal
            self._terminals.orphaned([terminal_of(call.id)])
            return None
        if terminal.note.call != call.id or (terminal.exit and terminal.exit.lost):
            return None
        call.use_terminal(terminal.id)
        return CommandPlan(
            claims=(),
            bound={},
            argv=terminal.argv,
            cwd=terminal.cwd,
            cwd_id=None,
            env={},
            programs=Programs({}),
            exact=None,
            input=input,
        )

    async def rejoin(self, plan: CommandPlan | TypedPlan, call: CallReport) -> Result:
        if isinstance(plan, TypedPlan):
            return await self._typed.rejoin(plan, call)
        terminal = self._terminals.get(call.terminal or "")
        assert terminal is not None, "found by find_work"
        began = anyio.current_time() - max(0.0, time.time() - terminal.created_at)
        return await self._attend_or_stop(terminal, plan, call, began)

    async def unwind(self, call: CallReport) -> None:
        terminal = self._terminals.get(call.terminal or "")
        if terminal is not None and terminal.note.of == "command":
            call.add_receipt(_receipt(terminal, await terminal.wait_swept()))
            self._terminals.release(terminal.id)

    def salvage(self, call: CallReport) -> Salvage | None:
        plan = call.plan
        if isinstance(plan, TypedPlan):
            return self._typed.salvage(plan, call)
        terminal = self._terminals.get(call.terminal) if call.terminal else None
        if terminal is None or not isinstance(plan, CommandPlan):
            return None
        output = read_output(terminal.tail, plan.input.output_head, plan.input.output_tail)
        left = terminal.exit
        if left is not None and not left.lost:  # `run` has not built the result yet
            return Salvage(
                result=_exit_result(plan, terminal, output, left, time.time() - terminal.created_at),
                message=COMPLETED,
                runs_on=False,
                receipt=_receipt(terminal),
                ended=True,
            )
        data = _data(plan, terminal, output)
        data["exit_code"] = None
        if terminal.asks is not None:
            then = f'call wait_for_call with call_id "{call.id}"'
            data["waiting_for_input"] = question_of(terminal.asks, terminal.id, then)
        return Salvage(
            result=answer(str(data["output"]), data, plan.input.response_format),
            message=COMPLETED,
            runs_on=True,
            receipt=_receipt(terminal),
        )

    async def _open(self, plan: CommandPlan, call: CallReport) -> Terminal:
        caller = call.caller
        owner = Owner(person=False, name=caller.client, workspace=caller.workspace)
        try:
            return await self._terminals.open(
                plan.argv,
                plan.cwd,
                {**plan.env, OWN_ID: call.terminal or ""},
                (COLUMNS, ROWS),
                self._settings.max_bytes,
                cap_lines=self._settings.max_lines,
                grace=self._settings.grace,
                id=call.terminal,
                note=TerminalNote(of="command", name=call.title, owner=owner, call=call.id),
                cwd_id=plan.cwd_id,
                programs=plan.checked_programs,
                exact=plan.exact.argv if plan.exact is not None else (),
            )
        except KeeperError as problem:
            raise Refusal(f"The command could not be started: {problem}") from None

    async def _attend_or_stop(
        self, terminal: Terminal, plan: CommandPlan, call: CallReport, began: float
    ) -> Result:
        try:
            return await self._attend(terminal, plan, call, began)
        except anyio.get_cancelled_exc_class():
            await self._stop(terminal, call)
            raise

    async def _attend(self, terminal: Terminal, plan: CommandPlan, call: CallReport, began: float) -> Result:
        """Wait for the exit and build the result; processes that outlive the command are left to `unwind`.

        Raises UnknownEnd if the exit was not observed.
        """
        left = await self._wait(terminal, plan, call, began)
        took = anyio.current_time() - began
        with anyio.move_on_after(SWEEP_SECONDS) as waited:
            await terminal.wait_swept()
        if waited.cancelled_caught:
            call.keep_unwinding()
        call.add_receipt(_receipt(terminal, terminal.swept))
        result = await _result(plan, terminal, left, took)
        self._terminals.release(terminal.id)
        if left.lost:
            raise UnknownEnd(unknown_end(left.lost), result)
        return result

    async def _wait(self, terminal: Terminal, plan: CommandPlan, call: CallReport, began: float) -> Exit:
        """Wait for the exit. On timeout stop the whole process tree, then raise Refusal."""
        limit = plan.input.timeout_seconds
        try:
            with anyio.fail_after(None if limit is None else max(0.0, began + limit - anyio.current_time())):
                return await self._exit(terminal, call)
        except TimeoutError:
            await self._stop(terminal, call)
            output = read_output(terminal.tail, plan.input.output_head, plan.input.output_tail)
            data = _data(plan, terminal, output)
            raise Refusal(
                f"The command ran out of time after {limit:g} s and was stopped with all it had started. "
                "Its output so far is kept.",
                answer(str(data["output"]), data, plan.input.response_format),
            ) from None

    async def _exit(self, terminal: Terminal, call: CallReport) -> Exit:
        """Wait for the exit; hand the call back when the command asks for input."""
        while terminal.exit is None:
            self._context.askings.heed(terminal, call)
            with anyio.move_on_after(LIKELY_SECONDS if terminal.asks is not None else None):
                await terminal.changed()
        return terminal.exit

    async def _stop(self, terminal: Terminal, call: CallReport) -> None:
        with anyio.move_on_after(self._settings.grace + STOP_BOUND, shield=True):
            try:
                call.add_receipt(_receipt(terminal, await terminal.stop(self._settings.grace)))
            except KeeperError:
                return  # the daemon is shutting down; the terminal stays with the keeper
            self._terminals.release(terminal.id)


def terminal_of(call: str) -> str:
    """The terminal id for a call.

    Derived from the call id, so that a restarted daemon can match them even if the terminal was not recorded.
    """
    return f"t{call[1:]}"


async def _read(command: str) -> Line:
    """Parse the command; a long line in a thread, to keep the event loop free."""
    is_long = len(command) > LONG_LINE
    return await anyio.to_thread.run_sync(read_line, command) if is_long else read_line(command)


def _shell(env: Mapping[str, str]) -> str:
    return os.path.realpath(shutil.which("bash", path=env.get("PATH")) or "/bin/sh")


async def _result(plan: CommandPlan, terminal: Terminal, exit: Exit, took: float) -> Result:
    params = plan.input
    output = read_output(terminal.tail, params.output_head, params.output_tail)
    output = await matching_lines(params, terminal.tail, output)
    return _exit_result(plan, terminal, output, exit, took)


def _exit_result(plan: CommandPlan, terminal: Terminal, output: Output, exit: Exit, took: float) -> Result:
    data = _data(plan, terminal, output)
    data |= {"exit_code": exit.code, "signal": exit.signal, "duration_ms": round(took * 1000)}
    return answer(f"{data['output']}\n[{_ending(exit)}, {took:.1f} s]", data, plan.input.response_format)


def _ending(exit: Exit) -> str:
    if exit.lost:
        return f"its end is unknown: {exit.lost}"
    return f"exit code {exit.code}" if exit.code is not None else f"ended by {exit.signal}"


def _data(plan: CommandPlan, terminal: Terminal, output: Output) -> Json:
    return {
        "output": output.text if output.captured else NO_OUTPUT,
        "output_captured": output.captured,
        "output_bytes": output.bytes,
        "output_left_out": output.left_out,
        "cwd": plan.cwd,
        "terminal_id": terminal.id,
    }


def _receipt(terminal: Terminal, report: Report | None = None) -> ReceiptFacts:
    """The receipt so far: bytes kept, and how the process tree was stopped."""
    ended = ReceiptFacts() if report is None else facts_of(report)
    return replace(ended, bytes_kept=terminal.tail.end - terminal.tail.first)
