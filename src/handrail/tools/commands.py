"""execute_command: a shell line in a terminal of its own.

Owns how a command is started, waited for, stopped, and told of. It does not start processes (the keeper does),
judge the command (gate/), or cut its output (output.py).
"""

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
from pydantic import BaseModel, Field

from handrail.gate.tool import Plan, Refusal, Salvage, Tool
from handrail.store.event import Caller, Claim, CommandPreview, Json, ProcessSeen, Result, SignalSent
from handrail.terminal.keeper import KeeperError
from handrail.terminal.terminal import Exit, Report, Terminal
from handrail.terminal.terminals import Terminals
from handrail.tools.answer import Format, Input, answer, brief
from handrail.tools.grep import check, grep
from handrail.tools.output import HEAD_LINES, TAIL_LINES, Output, read_output
from handrail.tools.workspace import Workspace

if TYPE_CHECKING:
    from handrail.gate.call import Call

COMMAND_BYTES = 100_000
"""The kernel takes one argument of at most 128 KiB."""
SWEEP_SECONDS = 0.05
"""A command that left nothing behind is swept by then; for others the result does not wait."""
STOP_BOUND = 10.0
"""Above the grace: how long a stop may hold up the end of a call before survivors are simply reported."""
COLUMNS, ROWS = 120, 40
NO_OUTPUT = "[No output captured]"
COMPLETED = "Command force-completed by user. May still be running in terminal."
_PLAIN = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "xterm-256color"}
"""A pager would wait for a key that nobody presses."""
_PASSED = ("HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "LC_*", "TERM", "TMPDIR")


class ExecuteCommandInput(Input):
    command: Annotated[str, Field(description="The line, run by `bash -c` in a terminal of its own.")]
    cwd: Annotated[str | None, Field(description="Where it runs; the workspace unless given.")] = None
    wait_seconds: Annotated[
        float | None,
        Field(ge=0, le=3600, description="How long to wait before the call is handed back still running."),
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(gt=0, le=86_400, description="End the command and all it started after this long."),
    ] = None
    background: Annotated[bool, Field(description="Hand the call back as soon as it has started.")] = False
    env: Annotated[dict[str, str], Field(description="Variables to add.")] = Field(default_factory=dict)
    output_head: Annotated[int, Field(ge=0, le=10_000, description="Lines to show from the start.")] = (
        HEAD_LINES
    )
    output_tail: Annotated[int, Field(ge=0, le=10_000, description="Lines to show from the end.")] = (
        TAIL_LINES
    )
    output_grep: Annotated[
        str | None, Field(description="Show only lines that match this regular expression.")
    ] = None
    response_format: Format = "text"


class ExecuteCommandOutput(BaseModel):
    exit_code: int | None = Field(None, description="None while it runs, or when a signal ended it.")
    signal: str | None = Field(None, description="The signal that ended it.")
    output: str | None = Field(None, description="What it printed: head and tail, escapes resolved.")
    output_captured: bool | None = Field(None, description="It printed something.")
    output_bytes: int | None = Field(None, description="All that it printed.")
    output_left_out: int | None = Field(None, description="Bytes that `output` does not show.")
    cwd: str | None = None
    duration_ms: int | None = Field(None, description="How long it ran, waiting for a person not counted.")
    terminal_id: str | None = Field(None, description="Where the whole output is kept.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlan(Plan):
    """A frozen argv, and everything it will find when it starts."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    input: ExecuteCommandInput


class ExecuteCommand(Tool[ExecuteCommandInput, CommandPlan]):
    """Runs a shell line where a person can watch it."""

    name = "execute_command"
    title = "Run command"
    description = (
        "Run a shell command on the person's machine, in a terminal they can watch. Returns its output (head and "
        "tail), exit code and duration. A command that outlasts wait_seconds (45 by default) is handed back as "
        "`running` with its call_id and goes on: ask wait_for_call. For servers and watchers set background. Whatever "
        "the command leaves running when it exits is ended. The person may be asked first, and may cancel or complete it."
    )
    input = ExecuteCommandInput
    output = ExecuteCommandOutput
    destructive = True

    def __init__(
        self,
        terminals: Terminals,
        environment: Mapping[str, str],
        own: Sequence[Path],
        max_bytes: int,
        stop_grace: float,
    ) -> None:
        self._terminals = terminals
        self._environment = environment
        self._own = tuple(own)
        self._max_bytes = max_bytes
        self._stop_grace = stop_grace

    def display(self, input: ExecuteCommandInput) -> str:
        return brief(input.command)

    def patience(self, input: ExecuteCommandInput) -> float | None:
        return input.wait_seconds

    async def plan(self, input: ExecuteCommandInput, caller: Caller) -> CommandPlan:
        _check(input)
        place = Workspace.of(caller, self._own).place(input.cwd or caller.workspace or "/")
        os.close(place.open_folder())
        shell = _shell(self._environment)
        env = {**self._environment, **_PLAIN, **input.env}
        claim = Claim(action="run", resource=input.command, inside=place.inside, protected=place.protected)
        preview = CommandPreview(
            command=input.command, cwd=place.path, program=shell, environment=tuple(sorted(input.env))
        )
        bound: Json = {**place.bound, "program": shell, "environment": _hash(env)}
        return CommandPlan(
            claims=(claim,),
            preview=preview,
            bound=bound,
            argv=(shell, "-c", input.command),
            cwd=place.path,
            env=env,
            input=input,
        )

    async def run(self, plan: CommandPlan, call: "Call") -> Result:
        call.terminal = terminal_of(call.id)
        began = anyio.current_time()
        terminal = await self._open(plan, call.terminal)
        if plan.input.background:
            call.hand_back()
        try:
            return await self._attend(terminal, plan, call, began)
        except anyio.get_cancelled_exc_class():
            await self._stop(terminal, call)
            raise

    async def unwind(self, call: "Call") -> None:
        terminal = self._terminals.get(call.terminal or "")
        if terminal is not None:
            _note(call, terminal, await terminal.wait_swept())
            self._terminals.release(terminal.id)

    def salvage(self, call: "Call") -> Salvage | None:
        plan = call.plan
        terminal = self._terminals.get(call.terminal) if call.terminal else None
        if terminal is None or not isinstance(plan, CommandPlan):
            return None
        output = read_output(terminal.tail, plan.input.output_head, plan.input.output_tail)
        _note(call, terminal, None)
        data = _data(plan, terminal, output)
        data["exit_code"] = None
        return Salvage(
            result=answer(str(data["output"]), data, plan.input.response_format),
            message=COMPLETED,
            runs_on=True,
        )

    async def _open(self, plan: CommandPlan, id: str) -> Terminal:
        size = (COLUMNS, ROWS)
        try:
            return await self._terminals.open(
                plan.argv, plan.cwd, plan.env, size, self._max_bytes, grace=self._stop_grace, id=id
            )
        except KeeperError as problem:
            raise Refusal(f"The command could not be started: {problem}") from None

    async def _attend(self, terminal: Terminal, plan: CommandPlan, call: "Call", began: float) -> Result:
        """What came of it; processes that outlast it are left to `unwind`."""
        left = await self._wait(terminal, plan, call)
        took = anyio.current_time() - began
        with anyio.move_on_after(SWEEP_SECONDS) as waited:
            await terminal.wait_swept()
        call.unwinding = waited.cancelled_caught
        _note(call, terminal, terminal.swept)
        result = await _result(plan, terminal, left, took)
        self._terminals.release(terminal.id)
        return result

    async def _wait(self, terminal: Terminal, plan: CommandPlan, call: "Call") -> Exit:
        """Its exit; a command that is out of time is stopped, whole tree, before this returns."""
        limit = plan.input.timeout_seconds
        try:
            with anyio.fail_after(limit):
                return await terminal.wait()
        except TimeoutError:
            await self._stop(terminal, call)
            output = read_output(terminal.tail, plan.input.output_head, plan.input.output_tail)
            data = _data(plan, terminal, output)
            raise Refusal(
                f"The command ran out of time after {limit:g} s and was stopped with all it had started. "
                "Its output so far is kept.",
                answer(str(data["output"]), data, plan.input.response_format),
            ) from None

    async def _stop(self, terminal: Terminal, call: "Call") -> None:
        with anyio.move_on_after(self._stop_grace + STOP_BOUND, shield=True):
            try:
                _note(call, terminal, await terminal.stop(self._stop_grace))
            except KeeperError:
                return  # the daemon is leaving, and the terminal stays with the keeper
            self._terminals.release(terminal.id)


def terminal_of(call: str) -> str:
    """The name of a command's terminal: by it a daemon that died before it could write it down is made up for."""
    return f"t{call[1:]}"


def child_environment(environ: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    """What children get of the daemon's environment: the harmless part, and what the person named."""
    names = (*_PASSED, *passed)
    return {
        name: value
        for name, value in environ.items()
        if name in names or any(wish.endswith("*") and name.startswith(wish[:-1]) for wish in names)
    }


def _check(input: ExecuteCommandInput) -> None:
    if not input.command.strip():
        raise Refusal("The command is empty. Give the line to run.")
    if "\0" in input.command or any("\0" in name + value or "=" in name for name, value in input.env.items()):
        raise Refusal("The command or a variable holds a NUL character, or a name holds `=`. Remove it.")
    if input.output_grep is not None:
        check(input.output_grep)
    size = len(input.command.encode(errors="replace"))
    if size > COMMAND_BYTES:
        raise Refusal(
            f"The command has {size:,} bytes, and {COMMAND_BYTES:,} are possible. "
            "Write it to a script with write_file and run that."
        )


def _shell(env: Mapping[str, str]) -> str:
    return os.path.realpath(shutil.which("bash", path=env.get("PATH")) or "/bin/sh")


def _hash(env: Mapping[str, str]) -> str:
    told = "\0".join(f"{name}={value}" for name, value in sorted(env.items()))
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()


async def _result(plan: CommandPlan, terminal: Terminal, exit: Exit, took: float) -> Result:
    asked = plan.input
    output = read_output(terminal.tail, asked.output_head, asked.output_tail)
    if asked.output_grep is not None:
        output = replace(output, text=await grep(asked.output_grep, terminal.tail))
    data = _data(plan, terminal, output)
    data |= {"exit_code": exit.code, "signal": exit.signal, "duration_ms": round(took * 1000)}
    return answer(f"{data['output']}\n[{_ending(exit)}, {took:.1f} s]", data, asked.response_format)


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


def _note(call: "Call", terminal: Terminal, report: Report | None) -> None:
    """What is now known, for the receipt."""
    call.receipt = replace(call.receipt, bytes_kept=terminal.tail.end - terminal.tail.first)
    if report is not None:
        call.receipt = replace(
            call.receipt,
            signals=tuple(SignalSent(signal=s.signal, after_ms=int(s.at_ms)) for s in report.signals),
            processes_stopped=tuple(ProcessSeen(pid=p.pid, name=p.name) for p in report.stopped),
            processes_left=tuple(ProcessSeen(pid=p.pid, name=p.name) for p in report.left),
        )
