"""list_tracked_terminals: what there is, and how it stands.

Owns which terminals an agent is shown. It does not open them (opening.py), end them (closing.py) or type (keyboard.py).
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Tool
from handrail.store.value import Caller, Claim, Json, Result
from handrail.tools.answer import Format, Input, answer
from handrail.tools.reach import Reach
from handrail.tools.terminals.facts import facts, line
from handrail.tools.terminals.known import Known, is_inside, is_own, look, of_record, of_terminal

MOST_LISTED = 100
"""Terminals told of at once, the newest first."""


class ListTrackedTerminalsInput(Input):
    runningOnly: Annotated[bool, Field(description="Leave out those that have ended.")] = False  # noqa: N815
    response_format: Format = "text"


class ListTrackedTerminalsOutput(BaseModel):
    terminals: list[dict[str, Any]] | None = Field(
        None,
        description="Each: id, name, kind, shell, cwd, pid, running, exit_code, signal, created_at and "
        "last_output_at (milliseconds since 1970), bytes, size, owner, busy, foreground, waiting_for_input, "
        "taken_over_by, and its last commands with their exit codes.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPlan(Plan):
    """For whom, and which."""

    caller: Caller
    input: ListTrackedTerminalsInput


class ListTrackedTerminals(Tool[ListTrackedTerminalsInput, ListPlan]):
    """Names the terminals there are."""

    name = "list_tracked_terminals"
    title = "List terminals"
    description = (
        "List the terminals, newest first: those that agents and people opened to stay, and those of your own calls that "
        "run. Tells what runs in each, where, whether it waits for input, and the last commands with their exit codes."
    )
    input = ListTrackedTerminalsInput
    output = ListTrackedTerminalsOutput
    reads_only = True
    repeats = True

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def display(self, input: ListTrackedTerminalsInput) -> str:
        return "List running terminals" if input.runningOnly else "List terminals"

    async def plan(self, input: ListTrackedTerminalsInput, caller: Caller) -> ListPlan:
        claim = Claim(action="recall", resource="terminals", inside=True)
        return ListPlan(claims=(claim,), bound={}, caller=caller, input=input)

    async def run(self, plan: ListPlan, call: CallReport) -> Result:
        told = [await self._told(known, plan.caller) for known in await self._shown(plan)]
        lines = [line(item) for item in told]
        return answer(
            "\n".join(lines) or "There are no terminals. create_tracked_terminal opens one.",
            {"terminals": [*told]},
            plan.input.response_format,
        )

    async def _shown(self, plan: ListPlan) -> list[Known]:
        live = [of_terminal(terminal) for terminal in self._reach.terminals.known if not terminal.pipes]
        found = {known.id: known for known in live if _is_listed(known, plan.caller)}
        if not plan.input.runningOnly:
            for record in await self._reach.records.terminals(of=("tracked", "shell"), limit=MOST_LISTED):
                found.setdefault(record.id, of_record(record, self._reach.terminals.tail(record.id)))
        newest = sorted(found.values(), key=lambda known: -known.opened_at)
        wanted = [known for known in newest if known.running or not plan.input.runningOnly]
        return [await look(known) for known in wanted[:MOST_LISTED]]

    async def _told(self, known: Known, caller: Caller) -> Json:
        private = not is_inside(known, caller)
        marks = None if private else await self._reach.marks(known)
        return facts(known, marks.commands if marks else (), private=private)


def _is_listed(known: Known, caller: Caller) -> bool:
    return known.of != "command" or is_own(known, caller)
