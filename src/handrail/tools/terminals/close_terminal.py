"""close_terminal: stop a terminal with all its processes.

The keeper stops the processes; this module reports which were stopped and which survived.
"""

from typing import Annotated, Any

import anyio
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, Json, Result
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import Report, Terminal
from handrail.tools.results import Format, Input, answer, count_text, facts_of
from handrail.tools.terminals.terminal_lookup import FoundTerminal, describe_exit, is_own, of_terminal
from handrail.tools.tool_context import ToolContext

CLOSE_BOUND = 10.0
"""Seconds after the grace period before the call reports that the terminal is still ending."""


class CloseTerminalInput(Input):
    terminalId: Annotated[str, Field(description="As list_tracked_terminals names it.")]  # noqa: N815
    response_format: Format = "text"


class CloseTerminalOutput(BaseModel, defer_build=True):
    terminal_id: str | None = None
    exit_code: int | None = Field(None, description="Of its shell; None when a signal ended it.")
    signal: str | None = None
    processes_stopped: list[dict[str, Any]] | None = Field(None, description="Each: pid, name.")
    processes_left: list[dict[str, Any]] | None = Field(
        None, description="What could not be ended. Each: pid, name."
    )
    was_running: bool | None = Field(None, description="False when it had ended before.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePlan(Plan):
    """The terminal to close."""

    known: FoundTerminal
    input: CloseTerminalInput


class CloseTerminal(Tool[CloseTerminalInput, ClosePlan]):
    """Stop a terminal with all its processes."""

    name = "close_terminal"
    title = "Close terminal"
    description = (
        "End a terminal with everything that runs in it, and tell what was stopped. Its output stays readable. "
        "Terminals that agents of your workspace opened are ended at once; for any other the person is asked."
    )
    input = CloseTerminalInput
    output = CloseTerminalOutput
    destructive = True

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def display(self, input: CloseTerminalInput) -> str:
        return f"Close terminal {input.terminalId}"

    async def plan(self, input: CloseTerminalInput, caller: Caller) -> ClosePlan:
        known = await self._context.find(input.terminalId)
        live = known.running
        if live is not None and live.taken is not None and not known.owner.person:
            raise Refusal(
                f"Terminal {known.id} is taken over by {live.taken.by}, so it was not closed. Wait until they release it."
            )
        claim = Claim(
            action="stop",
            resource=f"terminal {known.id} ({known.name})",
            inside=is_own(known, caller),
            protected=known.owner.person,
        )
        bound: Json = {"terminal": known.id, "pid": known.pid}
        return ClosePlan(claims=(claim,), bound=bound, known=known, input=input)

    async def run(self, plan: ClosePlan, call: CallReport) -> Result:
        known = plan.known
        if known.running is None or known.live is None:
            data: Json = {"terminal_id": known.id, "was_running": False, **_exit(known)}
            words = f"Terminal {known.id} had ended before ({describe_exit(known.exit)})."
            return answer(words, data, plan.input.response_format)
        report = await self._stop(known.live)
        after = of_terminal(known.live)
        call.add_receipt(facts_of(report))
        data = {
            "terminal_id": known.id,
            "was_running": True,
            **_exit(after),
            "processes_stopped": [{"pid": item.pid, "name": item.name} for item in report.stopped],
            "processes_left": [{"pid": item.pid, "name": item.name} for item in report.left],
        }
        return answer(_words(after, report), data, plan.input.response_format)

    async def _stop(self, terminal: Terminal) -> Report:
        grace = self._context.settings.grace
        try:
            with anyio.fail_after(grace + CLOSE_BOUND):
                return await terminal.stop(grace)
        except KeeperError as problem:
            raise Refusal(f"Terminal {terminal.id} could not be closed: {problem}") from None
        except TimeoutError:
            raise Refusal(
                f"Terminal {terminal.id} is still ending after {grace + CLOSE_BOUND:g} s. list_tracked_terminals tells "
                "when it has."
            ) from None


def _words(known: FoundTerminal, report: Report) -> str:
    names = ", ".join(f"{item.name} ({item.pid})" for item in report.stopped) or "nothing more"
    more = f" and {report.more} more" if report.more else ""
    left = ", ".join(f"{item.name} ({item.pid})" for item in report.left)
    survived = f" Still alive: {left}." if left else ""
    count = count_text(len(report.stopped) + report.more, "process")
    return (
        f"Closed terminal {known.id}: {describe_exit(known.exit)}. Stopped {count}: {names}{more}.{survived}"
    )


def _exit(known: FoundTerminal) -> Json:
    left = known.exit
    return {"exit_code": left and left.code, "signal": left and left.signal}
