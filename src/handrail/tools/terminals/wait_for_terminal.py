"""wait_for_terminal: wait for output, exit, idle, shell prompt, port or file.

Returns why the wait ended and the output since. The conditions are implemented in terminal/wait/.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Json, Result
from handrail.terminal.safe_regex import DIALECT, BadPattern, compile_pattern
from handrail.terminal.wait.pattern_match import open_matcher
from handrail.terminal.wait.ports import can_list_ports
from handrail.terminal.wait.wait import (
    AtPrompt,
    Condition,
    FileWritten,
    Idle,
    PatternMatches,
    PortListens,
    ProcessExits,
    Until,
    WaitReason,
    WaitResult,
    wait,
)
from handrail.tools.commands.command_output import read_output
from handrail.tools.results import REPLY_SECONDS, Format, Input, answer, cap_wait, printable_line
from handrail.tools.terminals.get_terminal_buffer import mask_result
from handrail.tools.terminals.input_requests import question_of
from handrail.tools.terminals.terminal_lookup import FoundTerminal, describe_exit, of_terminal, reading_claim
from handrail.tools.tool_context import ToolContext
from handrail.tools.workspace import Place

TIMEOUT_SECONDS = 40.0
"""Below the shortest client timeout, so that a wait returns its result and is not handed back."""


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


class WaitForTerminalOutput(BaseModel, defer_build=True):
    terminal_id: str | None = None
    woke: WaitReason | None = Field(
        None, description="Why the wait ended: what was waited for, or what came first."
    )
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
    """Raises Refusal when `value` does not fit the condition."""
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
            if not can_list_ports():
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


IDLE_SECONDS = 2.0
HEAD_LINES, TAIL_LINES = 50, 150
"""Lines of the new output returned with the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPlan(Plan):
    """The terminal and the condition."""

    known: FoundTerminal
    place: Place | None
    who: str
    input: WaitForTerminalInput


class WaitForTerminal(Tool[WaitForTerminalInput, WaitPlan]):
    """Wait for a condition of a terminal."""

    name = "wait_for_terminal"
    title = "Wait for terminal"
    description = (
        "Wait until something is so in a terminal, and get why the wait ended and the output since. What came between the "
        "last input and this call counts, so send_to_terminal and then wait_for_terminal misses nothing. Every wait also "
        "ends when the terminal ends (`exit`), when its program asks for input (`waiting_for_input`, once for each "
        "question) and when the time is up (`timeout`: nothing is stopped, ask again)."
    )
    input = WaitForTerminalInput
    output = WaitForTerminalOutput
    reads_only = True
    repeats = True

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def display(self, input: WaitForTerminalInput) -> str:
        what = f" {printable_line(str(input.value), 60)}" if input.value is not None else ""
        return f"Wait for terminal {input.terminalId}: {input.until}{what}"

    def patience(self, input: WaitForTerminalInput) -> float | None:
        return input.timeout_seconds + REPLY_SECONDS if input.timeout_seconds > TIMEOUT_SECONDS else None

    async def plan(self, input: WaitForTerminalInput, caller: Caller) -> WaitPlan:
        known = await self._context.find(input.terminalId)
        check(input)
        place = self._context.workspace(caller).place(str(input.value)) if input.until == "file" else None
        claims = (
            (reading_claim(known, caller),)
            if place is None
            else (reading_claim(known, caller), place.claim("read"))
        )
        return WaitPlan(
            claims=claims,
            bound={"terminal": known.id, "path": place and place.path},
            known=known,
            place=place,
            who=caller.key,
            input=input,
        )

    async def run(self, plan: WaitPlan, call: CallReport) -> Result:
        start = await self._start(plan.known, plan.input)
        try:
            with ExitStack() as stack:
                limit = cap_wait(plan.input.timeout_seconds, TIMEOUT_SECONDS, call)
                woke = await self._wait_or_ended(plan, await self._condition(plan, start, stack), limit)
        except BadPattern as problem:
            raise Refusal(str(problem)) from None
        return await self._build_result(plan, woke, start, limit)

    async def _wait_or_ended(self, plan: WaitPlan, condition: Condition, limit: float) -> WaitResult:
        terminal, left = plan.known.running, plan.known.exit
        if terminal is not None:
            asks = partial(self._context.askings.find_new, terminal, plan.who)
            return await wait(terminal, condition, limit, asks)
        if (detail := await condition.met()) is not None:  # it has ended, and the condition holds
            return WaitResult(why=condition.until, detail=detail)
        return WaitResult(
            why="exit", detail={"exit_code": left and left.code, "signal": left and left.signal}
        )

    async def _condition(self, plan: WaitPlan, start: int, stack: ExitStack) -> Condition:
        known, value = plan.known, plan.input.value
        marks = partial(self._context.marks, known)
        match plan.input.until:
            case "pattern":
                matcher = stack.enter_context(open_matcher(str(value)))
                return PatternMatches(known.tail, matcher, start, marks if plan.input.after is None else None)
            case "port":
                return PortListens(known.pid, int(value or 0))
            case "file":
                assert plan.place is not None
                place, since = plan.place, await self._since(known)
                return await anyio.to_thread.run_sync(FileWritten, place.path, place.look, since)
            case "idle" if known.running is not None:
                return Idle(known.running, IDLE_SECONDS if value is None else float(value))
            case "prompt" if known.running is not None:
                return AtPrompt(known.running, start, marks)
            case "exit" | "idle" | "prompt":
                return ProcessExits()

    async def _since(self, known: FoundTerminal) -> float:
        """Time of the last input, else of opening; in seconds since 1970."""
        if known.live is not None and known.live.last_input_at is not None:
            return known.live.last_input_at
        typed = await self._context.records.terminals.typed(known.id, 1)
        return (typed[-1].at if typed else known.opened_at) / 1000

    async def _start(self, known: FoundTerminal, params: WaitForTerminalInput) -> int:
        """Offset where new output starts: at the last input, unless `after` is given."""
        if params.after is not None:
            return params.after
        if known.live is not None and known.live.last_input is not None:
            return known.live.last_input
        typed = await self._context.records.terminals.typed(known.id, 1)
        return typed[-1].offset if typed else known.tail.first

    async def _build_result(self, plan: WaitPlan, woke: WaitResult, start: int, limit: float) -> Result:
        known = plan.known if plan.known.live is None else of_terminal(plan.known.live)
        end = known.tail.end
        shown = await anyio.to_thread.run_sync(
            lambda: read_output(known.tail, HEAD_LINES, TAIL_LINES, begin=start, end=end)
        )
        data: Json = {
            "terminal_id": known.id,
            "woke": woke.why,
            "detail": woke.detail,
            "output": shown.text,
            "output_left_out": shown.left_out,
            "start": start,
            "next": end,
            "running": known.running is not None,
            "exit_code": known.exit and known.exit.code,
            "signal": known.exit and known.exit.signal,
        }
        words = _words(known, woke, limit)
        if known.running is not None and (asks := known.running.asks) is not None:
            self._context.askings.mark_seen(known.running, plan.who)
            request = question_of(asks, known.id, "call wait_for_terminal again")
            data["waiting_for_input"] = request
            words = f"{words} {request['advice']}"
        words = f"{words}\n\n{shown.text}" if shown.text else words
        return mask_result(answer(words, data, plan.input.response_format), known.nonce)


def _words(known: FoundTerminal, woke: WaitResult, limit: float) -> str:
    detail = woke.detail
    words: dict[WaitReason, Callable[[], str]] = {
        "exit": lambda: f"Terminal {known.id} has ended: {describe_exit(known.exit)}.",
        "pattern": lambda: f"The pattern is there: {printable_line(str(detail['line']), 200)}",
        "idle": lambda: f"Nothing was printed for {detail['quiet_seconds']} s.",
        "prompt": lambda: f"The shell is back at its prompt{_last(detail)}.",
        "port": lambda: f"Port {detail['port']} is open, held {_held(detail)}.",
        "file": lambda: f"{detail['path']} is there{', and was written' if detail['existed'] else ''}.",
        "waiting_for_input": lambda: "The wait ended early.",
        "timeout": lambda: f"The time was up after {limit:g} s; the terminal goes on.",
    }
    return words[woke.why]()


def _last(detail: Json) -> str:
    code = detail["exit_code"]
    return f", exit code of the last command: {code}" if code is not None else ""


def _held(detail: Json) -> str:
    return (
        f"by pid {detail['pid']}, in this terminal" if detail["pid"] else "by something outside this terminal"
    )
