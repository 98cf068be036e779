"""Input and output of execute_command, shared by both ways to run a line.

execute_command.py runs it in a new terminal, run_in_terminal.py in an existing one.
"""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field

from handrail.gate.tool import Refusal
from handrail.terminal.output.tail import Tail
from handrail.terminal.safe_regex import DIALECT
from handrail.tools.commands.command_output import HEAD_LINES, TAIL_LINES, Output, grep
from handrail.tools.commands.command_output import check as check_pattern
from handrail.tools.results import Format, Input

COMMAND_BYTES = 100_000
"""Below the kernel's limit of 128 KiB for one argument."""
NO_OUTPUT = "[No output captured]"
COMPLETED = "Command force-completed by user. May still be running in terminal."


class ExecuteCommandInput(Input):
    command: Annotated[
        str,
        Field(description="The line, run by `bash -c` in a terminal of its own, or typed into terminal_id."),
    ]
    cwd: Annotated[str | None, Field(description="Where it runs; the workspace unless given.")] = None
    terminal_id: Annotated[
        str | None,
        Field(
            description="A terminal whose shell is to run it, keeping its directory and variables; refused while that is busy."
        ),
    ] = None
    wait_seconds: Annotated[
        float | None,
        Field(ge=0, le=3600, description="How long to wait before the call is handed back still running."),
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=86_400,
            description="End the command and all it started after this long; with terminal_id, interrupt it by Ctrl-C.",
        ),
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
        str | None, Field(description=f"Show only lines that match this regular expression ({DIALECT}).")
    ] = None
    response_format: Format = "text"


class ExecuteCommandOutput(BaseModel, defer_build=True):
    exit_code: int | None = Field(
        None, description="None while it runs, when a signal ended it, or when the shell does not tell."
    )
    signal: str | None = Field(None, description="The signal that ended it.")
    output: str | None = Field(None, description="What it printed: head and tail, escapes resolved.")
    output_captured: bool | None = Field(None, description="It printed something.")
    output_bytes: int | None = Field(None, description="All that it printed.")
    output_left_out: int | None = Field(None, description="Bytes that `output` does not show.")
    cwd: str | None = Field(
        None, description="Where it ran; with terminal_id, where the shell is afterwards."
    )
    duration_ms: int | None = Field(None, description="How long it ran, waiting for a person not counted.")
    terminal_id: str | None = Field(None, description="Where the whole output is kept.")
    waiting_for_input: dict[str, Any] | None = Field(
        None,
        description="When it waits for input: prompt, sure (`certain` or `likely`), secret (only a person may answer), advice.",
    )


async def matching_lines(
    input: ExecuteCommandInput, tail: Tail, output: Output, begin: int = 0, end: int | None = None
) -> Output:
    """Replace the text by the lines that match `output_grep`, if given."""
    if input.output_grep is None:
        return output
    return replace(output, text=await grep(input.output_grep, tail, begin, end))


def check(input: ExecuteCommandInput) -> None:
    if not input.command.strip():
        raise Refusal("The command is empty. Give the line to run.")
    if "\0" in input.command or any("\0" in name + value or "=" in name for name, value in input.env.items()):
        raise Refusal("The command or a variable holds a NUL character, or a name holds `=`. Remove it.")
    if input.output_grep is not None:
        check_pattern(input.output_grep)
    size = len(input.command.encode(errors="replace"))
    if size > COMMAND_BYTES:
        raise Refusal(
            f"The command has {size:,} bytes, and {COMMAND_BYTES:,} are possible. "
            "Write it to a script with write_file and run that."
        )
