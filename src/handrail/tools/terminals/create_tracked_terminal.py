"""create_tracked_terminal: open a shell that stays open between calls.

The shell is started by terminal/open_shell.py.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import anyio
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, CommandPreview, Json, Owner, Result
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.open_shell import COLS, ROWS, OpenRefused, default_shell, open_shell, resolve_program
from handrail.terminal.terminal import Terminal
from handrail.terminal.wait.wait import watch_changes
from handrail.tools.commands.command_claims import opening_claims
from handrail.tools.commands.programs import facts
from handrail.tools.results import Format, Input, answer, printable_line
from handrail.tools.terminals.terminal_lookup import of_terminal
from handrail.tools.tool_context import PLAIN, ToolContext, hash_environment
from handrail.tools.workspace import Place

FIRST_PROMPT_SECONDS = 3.0
"""Bounds the wait for a new shell's first prompt; start-up files can be slow."""


SHELLS = frozenset(("bash", "zsh", "fish", "sh", "dash", "ksh", "mksh", "tcsh", "nu", "xonsh", "elvish"))

_SHELL_ARGS = frozenset(("-l", "--login", "-i", "--norc", "--noprofile"))


class CreateTrackedTerminalInput(Input):
    name: Annotated[str | None, Field(max_length=100, description="What people will see it called.")] = None
    shellPath: Annotated[  # noqa: N815 - the wire's name
        str | None, Field(description="Shell or other program to run; the person's own shell unless given.")
    ] = None
    shellArgs: Annotated[list[str], Field(description="Arguments for it.")] = Field(default_factory=list)  # noqa: N815
    cwd: Annotated[str | None, Field(description="Where it begins; the workspace unless given.")] = None
    env: Annotated[dict[str, str], Field(description="Variables to add.")] = Field(default_factory=dict)
    cols: Annotated[int, Field(ge=1, le=1000, description="Columns.")] = COLS
    rows: Annotated[int, Field(ge=1, le=1000, description="Rows.")] = ROWS
    response_format: Format = "text"


class CreateTrackedTerminalOutput(BaseModel, defer_build=True):
    terminal_id: str | None = Field(None, description="Give this to the other terminal tools.")
    terminalId: str | None = Field(None, description="The same, by the name that those tools take.")  # noqa: N815
    id: str | None = Field(None, description="The same.")
    name: str | None = None
    shell: str | None = None
    pid: int | None = None
    cwd: str | None = None
    size: list[int] | None = Field(None, description="Columns and rows.")
    marks: bool | None = Field(
        None, description="Its shell marks commands, so that exit codes and each command's output are known."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningPlan(Plan):
    """The program to start, with its folder and environment."""

    shell: str
    place: Place
    env: Mapping[str, str]
    owner: Owner
    input: CreateTrackedTerminalInput


class CreateTrackedTerminal(Tool[CreateTrackedTerminalInput, OpeningPlan]):
    """Open a shell that stays open until it is closed."""

    name = "create_tracked_terminal"
    title = "Open terminal"
    description = (
        "Open a terminal that stays: a real shell whose directory, variables and programs live on between calls, and "
        "which the person can watch, type into and take over. Use it for REPLs, servers, watchers and interactive "
        "programs; for a single command execute_command alone is simpler. Run lines in it with execute_command and "
        "its terminal_id, type with send_to_terminal, read with get_terminal_buffer, wait with wait_for_terminal, end "
        "it with close_terminal. The person may be asked first."
    )
    input = CreateTrackedTerminalInput
    output = CreateTrackedTerminalOutput
    destructive = True

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._opened = 0

    def display(self, input: CreateTrackedTerminalInput) -> str:
        named = input.name or shlex.join([input.shellPath or "shell", *input.shellArgs])
        return f"Open terminal {printable_line(named, 60)}"

    async def plan(self, input: CreateTrackedTerminalInput, caller: Caller) -> OpeningPlan:
        settings = self._context.settings
        place = self._context.workspace(caller).place(input.cwd or caller.workspace or "/")
        os.close(place.open_folder())
        env = {**settings.environment, **PLAIN, **input.env}
        try:
            shell = resolve_program(input.shellPath or default_shell(settings.shell, env), env)
        except OpenRefused as problem:
            raise Refusal(f"{problem} Nothing was opened.") from None
        line = shlex.join([shell, *input.shellArgs])
        plain = is_shell(shell, input.shellArgs) and self._is_installed(shell, caller)
        claims = opening_claims(line, plain, place, input.env)
        preview = CommandPreview(
            command=line, cwd=place.path, program=shell, environment=tuple(sorted(input.env))
        )
        return OpeningPlan(
            claims=claims,
            preview=preview,
            bound={
                **place.bound,
                "program": shell,
                "programs": {shell: facts(shell, place.path, "")},
                "environment": hash_environment(env),
            },
            shell=shell,
            place=place,
            env=env,
            owner=Owner(person=False, name=caller.client, workspace=caller.workspace),
            input=input,
        )

    def _is_installed(self, shell: str, caller: Caller) -> bool:
        """Whether it is the person's own shell, or on their PATH and outside the workspace.

        A file of the workspace could have the name of a shell.
        """
        environment = self._context.settings.environment
        known = shell == default_shell(self._context.settings.shell, environment)
        folders = environment.get("PATH", os.defpath).split(":")
        inside = self._context.workspace(caller).place(shell).inside
        return known or (str(Path(shell).parent) in folders and not inside)

    async def run(self, plan: OpeningPlan, call: CallReport) -> Result:
        terminal = await self._open(plan)
        marked = await self._first_prompt(terminal)
        seen = of_terminal(terminal)
        data: Json = {
            "terminal_id": terminal.id,
            "terminalId": terminal.id,
            "id": terminal.id,
            "name": seen.name,
            "shell": plan.shell,
            "pid": terminal.pid,
            "cwd": seen.cwd,
            "size": [*terminal.size],
            "marks": marked,
        }
        return answer(_words(data), data, plan.input.response_format)

    async def _open(self, plan: OpeningPlan) -> Terminal:
        params, settings = plan.input, self._context.settings
        self._opened += 1
        try:
            return await open_shell(
                self._context.terminals,
                shell=plan.shell,
                args=params.shellArgs,
                cwd=plan.place.path,
                cwd_id=plan.place.identity,
                env=plan.env,
                size=(params.cols, params.rows),
                of="tracked",
                name=params.name or f"{Path(plan.shell).name} {self._opened}",
                owner=plan.owner,
                max_bytes=settings.max_bytes,
                max_lines=settings.max_lines,
                grace=settings.grace,
                scripts=settings.scripts,
            )
        except (OpenRefused, KeeperError) as problem:
            raise Refusal(f"The terminal could not be opened: {problem}") from None

    async def _first_prompt(self, terminal: Terminal) -> bool:
        """Wait for the first prompt, up to the bound; return whether the shell marks its prompts."""
        if not terminal.note.nonce:
            return False
        known, marks = of_terminal(terminal), None
        with anyio.move_on_after(FIRST_PROMPT_SECONDS):
            async with watch_changes(terminal) as stir:
                while terminal.exit is None:
                    marks = await self._context.marks(known)
                    if marks is not None and marks.at_prompt:
                        return True
                    await stir.next()
        return marks is not None and marks.at_prompt is not None


def is_shell(program: str, args: Sequence[str]) -> bool:
    """Whether it is a plain interactive shell: its commands are approved when they are typed."""
    return Path(program).name in SHELLS and all(word in _SHELL_ARGS for word in args)


def _words(data: Json) -> str:
    knows = (
        "Its shell marks each command, so exit codes are known."
        if data["marks"]
        else "Its program does not mark commands, so exit codes are not known."
    )
    return (
        f"Opened terminal {data['terminal_id']} ({data['name']}): {data['shell']}, pid {data['pid']}, in {data['cwd']}. "
        f'{knows} Run lines with execute_command and terminal_id "{data["terminal_id"]}".'
    )
