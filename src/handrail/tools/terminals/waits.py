"""wait_for_terminal: until something is so, and then why the wait ended.

Owns how a wait is asked for and told. It does not wait itself (terminal/waiting/wait.py).
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.value import Caller, Json, Result
from handrail.terminal.safe_regex import BadPattern
from handrail.terminal.wait.pattern_match import matching
from handrail.terminal.wait.wait import (
    AtPrompt,
    Condition,
    Exits,
    Idle,
    Listens,
    Matches,
    Why,
    Woke,
    Written,
    wait,
)
from handrail.tools.answer import answer, brief
from handrail.tools.commands.output import read_output
from handrail.tools.place import Place
from handrail.tools.reach import Reach
from handrail.tools.terminals.asking import question_of
from handrail.tools.terminals.known import Known, ending, of_terminal, reading
from handrail.tools.terminals.pieces import blot
from handrail.tools.terminals.wait_shape import (
    TIMEOUT_SECONDS,
    WaitForTerminalInput,
    WaitForTerminalOutput,
    check,
)

IDLE_SECONDS = 2.0
HEAD_LINES, TAIL_LINES = 50, 150
"""Of the output since, told with the wake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPlan(Plan):
    """Which terminal, and for what."""

    known: Known
    place: Place | None
    who: str
    input: WaitForTerminalInput


class WaitForTerminal(Tool[WaitForTerminalInput, WaitPlan]):
    """Waits for a terminal."""

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

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def display(self, input: WaitForTerminalInput) -> str:
        what = f" {brief(str(input.value), 60)}" if input.value is not None else ""
        return f"Wait for terminal {input.terminalId}: {input.until}{what}"

    def patience(self, input: WaitForTerminalInput) -> float | None:
        return input.timeout_seconds + 5 if input.timeout_seconds > TIMEOUT_SECONDS else None

    async def plan(self, input: WaitForTerminalInput, caller: Caller) -> WaitPlan:
        known = await self._reach.find(input.terminalId)
        check(input)
        place = self._reach.workspace(caller).place(str(input.value)) if input.until == "file" else None
        claims = (reading(known, caller),) if place is None else (reading(known, caller), place.claim("read"))
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
                woke = await self._woke(plan, await self._condition(plan, start, stack))
        except BadPattern as problem:
            raise Refusal(str(problem)) from None
        return await self._told(plan, woke, start)

    async def _woke(self, plan: WaitPlan, condition: Condition) -> Woke:
        terminal, left = plan.known.running, plan.known.exit
        if terminal is not None:
            asks = partial(self._reach.askings.fresh, terminal, plan.who)
            return await wait(terminal, condition, plan.input.timeout_seconds, asks)
        if (detail := await condition.met()) is not None:  # it has ended, and what was wished for is so
            return Woke(why=condition.until, detail=detail)
        return Woke(why="exit", detail={"exit_code": left and left.code, "signal": left and left.signal})

    async def _condition(self, plan: WaitPlan, start: int, stack: ExitStack) -> Condition:
        known, value = plan.known, plan.input.value
        marks = partial(self._reach.marks, known)
        match plan.input.until:
            case "pattern":
                matcher = stack.enter_context(matching(str(value)))
                return Matches(known.tail, matcher, start, marks if plan.input.after is None else None)
            case "port":
                return Listens(known.pid, int(value or 0))
            case "file":
                assert plan.place is not None
                place, since = plan.place, await self._since(known)
                return await anyio.to_thread.run_sync(Written, place.path, place.look, since)
            case "idle" if known.running is not None:
                return Idle(known.running, IDLE_SECONDS if value is None else float(value))
            case "prompt" if known.running is not None:
                return AtPrompt(known.running, start, marks)
            case "exit" | "idle" | "prompt":
                return Exits()

    async def _since(self, known: Known) -> float:
        """When somebody typed last, or it was opened; in seconds since 1970."""
        if known.live is not None and known.live.last_input_at is not None:
            return known.live.last_input_at
        typed = await self._reach.records.typed(known.id, 1)
        return (typed[-1].at if typed else known.opened_at) / 1000

    async def _start(self, known: Known, asked: WaitForTerminalInput) -> int:
        """Where new output begins: where somebody typed last."""
        if asked.after is not None:
            return asked.after
        if known.live is not None and known.live.last_input is not None:
            return known.live.last_input
        typed = await self._reach.records.typed(known.id, 1)
        return typed[-1].offset if typed else known.tail.first

    async def _told(self, plan: WaitPlan, woke: Woke, start: int) -> Result:
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
        words = _words(known, woke, plan.input)
        if known.running is not None and (asks := known.running.asks) is not None:
            self._reach.askings.tell(known.running, plan.who)
            asked = question_of(asks, known.id, "call wait_for_terminal again")
            data["waiting_for_input"] = asked
            words = f"{words} {asked['advice']}"
        words = f"{words}\n\n{shown.text}" if shown.text else words
        return blot(answer(words, data, plan.input.response_format), known.nonce)


def _words(known: Known, woke: Woke, asked: WaitForTerminalInput) -> str:
    detail = woke.detail
    words: dict[Why, Callable[[], str]] = {
        "exit": lambda: f"Terminal {known.id} has ended: {ending(known.exit)}.",
        "pattern": lambda: f"The pattern is there: {brief(str(detail['line']), 200)}",
        "idle": lambda: f"Nothing was printed for {detail['quiet_seconds']} s.",
        "prompt": lambda: f"The shell is back at its prompt{_last(detail)}.",
        "port": lambda: f"Port {detail['port']} is open, held {_held(detail)}.",
        "file": lambda: f"{detail['path']} is there{', and was written' if detail['existed'] else ''}.",
        "waiting_for_input": lambda: "The wait ended early.",
        "timeout": lambda: f"The time was up after {asked.timeout_seconds:g} s; the terminal goes on.",
    }
    return words[woke.why]()


def _last(detail: Json) -> str:
    code = detail["exit_code"]
    return f", exit code of the last command: {code}" if code is not None else ""


def _held(detail: Json) -> str:
    return (
        f"by pid {detail['pid']}, in this terminal" if detail["pid"] else "by something outside this terminal"
    )
