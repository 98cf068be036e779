"""What wait_for_terminal is asked, what it tells, and which wishes make no sense."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from handrail.gate.tool import Refusal
from handrail.terminal.safe_regex import DIALECT, BadPattern, compile_pattern
from handrail.terminal.wait.ports import can_tell
from handrail.terminal.wait.wait import Until, Why
from handrail.tools.answer import Format, Input

TIMEOUT_SECONDS = 40.0
"""Below the shortest patience, so that a wait ends by itself and is not handed back."""


class WaitForTerminalInput(Input):
    terminalId: Annotated[str, Field(description="As list_tracked_terminals names it.")]  # noqa: N815
    until: Annotated[
        Until,
        Field(
            description="`exit`: its program ends. `pattern`: its output matches `value`. `idle`: no output for `value` "
            "seconds (2). `prompt`: the shell waits for the next line. `port`: something listens on port `value`. "
            "`file`: the file `value` appears, or is written anew."
        ),
    ]
    value: Annotated[
        str | int | float | None,
        Field(description=f"The pattern (a regular expression; {DIALECT}), seconds, port or path."),
    ] = None
    timeout_seconds: Annotated[
        float, Field(ge=0, le=3600, description="How long to wait at most; the terminal goes on.")
    ] = TIMEOUT_SECONDS
    after: Annotated[
        int | None,
        Field(
            ge=0,
            description="A byte offset (`next` of another result): what counts as new. Where the output stood when "
            "something was typed last, unless given.",
        ),
    ] = None
    response_format: Format = "text"


class WaitForTerminalOutput(BaseModel):
    terminal_id: str | None = None
    woke: Why | None = Field(None, description="Why the wait ended: what was waited for, or what came first.")
    detail: dict[str, Any] | None = Field(
        None, description="What is known of it: matched and line, exit_code, port and pid, path …"
    )
    waiting_for_input: dict[str, Any] | None = Field(
        None, description="When its program waits for input: prompt, sure, secret, advice."
    )
    output: str | None = Field(None, description="The output since, as text: head and tail.")
    output_left_out: int | None = Field(None, description="Bytes of it that `output` does not show.")
    start: int | None = Field(None, description="Where `output` begins.")
    next: int | None = Field(None, description="Give this as `after` to go on from here.")
    running: bool | None = None
    exit_code: int | None = None
    signal: str | None = None


def check(input: WaitForTerminalInput) -> None:
    """Raises Refusal when the value does not fit what is waited for."""
    value = input.value
    match input.until:
        case "exit" | "prompt":
            return
        case "pattern":
            try:
                compile_pattern(_needed(value, "a regular expression"), multiline=True)
            except BadPattern as problem:
                raise Refusal(str(problem)) from None
        case "idle":
            if value is not None and not _between(value, 0.1, 3600):
                raise Refusal("`value` is for how many seconds it must be quiet: a number from 0.1 to 3600.")
        case "port":
            if not _between(value, 1, 65_535) or not str(value).isdecimal():
                raise Refusal("`value` is the port's number, from 1 to 65535.")
            if not can_tell():
                raise Refusal(
                    "This system does not tell who listens on a port. Wait for a pattern in the output instead."
                )
        case "file":
            _needed(value, "the path of a file")


def _needed(value: str | float | None, what: str) -> str:
    if value is None or not str(value):
        raise Refusal(f"`value` is needed: {what}.")
    return str(value)


def _between(value: str | float | None, low: float, high: float) -> bool:
    try:
        return value is not None and low <= float(value) <= high
    except ValueError:
        return False
