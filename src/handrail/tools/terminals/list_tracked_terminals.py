"""list_tracked_terminals: list terminals and their state, as JSON and as lines of text."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, JsonValue

from handrail.gate.tool import CallReport, Plan, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, Json, Owner, Result
from handrail.terminal.shell_marks import Command
from handrail.terminal.terminal import InputRequest
from handrail.tools.results import Format, Input, answer, printable_line
from handrail.tools.terminals.terminal_lookup import (
    FoundTerminal,
    is_inside,
    is_own,
    look,
    of_record,
    of_terminal,
)
from handrail.tools.tool_context import ToolContext

MOST_LISTED = 100
"""Terminals in one answer, newest first."""


class ListTrackedTerminalsInput(Input):
    runningOnly: Annotated[bool, Field(description="Leave out those that have ended.")] = False  # noqa: N815
    response_format: Format = "text"


class ListTrackedTerminalsOutput(BaseModel, defer_build=True):
    terminals: list[dict[str, Any]] | None = Field(
        None,
        description="Each: id, name, kind, shell, cwd, pid, running, exit_code, signal, created_at and "
        "last_output_at (milliseconds since 1970), bytes, size, owner, busy, foreground, waiting_for_input, "
        "taken_over_by, and its last commands with their exit codes.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPlan(Plan):
    """The caller and the filter."""

    caller: Caller
    input: ListTrackedTerminalsInput


class ListTrackedTerminals(Tool[ListTrackedTerminalsInput, ListPlan]):
    """List the terminals."""

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

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def display(self, input: ListTrackedTerminalsInput) -> str:
        return "List running terminals" if input.runningOnly else "List terminals"

    async def plan(self, input: ListTrackedTerminalsInput, caller: Caller) -> ListPlan:
        claim = Claim(action="recall", resource="terminals", inside=True)
        return ListPlan(claims=(claim,), bound={}, caller=caller, input=input)

    async def run(self, plan: ListPlan, call: CallReport) -> Result:
        views = [await self._facts(known, plan.caller) for known in await self._shown(plan)]
        lines = [format_line(item) for item in views]
        return answer(
            "\n".join(lines) or "There are no terminals. create_tracked_terminal opens one.",
            {"terminals": [*views]},
            plan.input.response_format,
        )

    async def _shown(self, plan: ListPlan) -> list[FoundTerminal]:
        live = [of_terminal(terminal) for terminal in self._context.terminals.known if not terminal.pipes]
        found = {known.id: known for known in live if _is_listed(known, plan.caller)}
        if not plan.input.runningOnly:
            for record in await self._context.records.terminals.find(
                of=("tracked", "shell"), limit=MOST_LISTED
            ):
                found.setdefault(record.id, of_record(record, self._context.terminals.tail(record.id)))
        newest = sorted(found.values(), key=lambda known: -known.opened_at)
        wanted = [known for known in newest if known.running or not plan.input.runningOnly]
        return [await look(known) for known in wanted[:MOST_LISTED]]

    async def _facts(self, known: FoundTerminal, caller: Caller) -> Json:
        private = not is_inside(known, caller)
        marks = None if private else await self._context.marks(known)
        return facts(known, marks.commands if marks else (), private=private)


def _is_listed(known: FoundTerminal, caller: Caller) -> bool:
    return known.of != "command" or is_own(known, caller)


LAST_COMMANDS = 10
"""Commands listed with each shell, newest last."""


def facts(known: FoundTerminal, commands: Sequence[Command], *, private: bool) -> Json:
    """The state of a terminal as JSON. `private`: without input requests and commands."""
    live = known.running
    seen = live and live.seen
    view: Json = {
        "id": known.id,
        "name": known.name,
        "kind": known.of,
        "shell": known.argv[0] if known.argv else "",
        "cwd": known.cwd,
        "pid": known.pid,
        "running": live is not None,
        "exit_code": known.exit and known.exit.code,
        "signal": known.exit and known.exit.signal,
        "created_at": known.opened_at,
        "last_output_at": _ms(live.last_output_at) if live else known.tail.time_of(known.tail.end),
        "bytes": known.tail.end,
        "size": list[JsonValue](known.size),
        "owner": owner(known.owner),
        "busy": seen.busy if seen else None,
        "foreground": {"pid": seen.foreground.pid, "name": seen.foreground.name}
        if seen and seen.foreground
        else None,
        "taken_over_by": live.taken.by if live and live.taken else None,
        "forgotten": known.forgotten,
    }
    if not private:
        view["waiting_for_input"] = request_json(live.asks) if live and live.asks else None
        view["commands"] = [command_json(item) for item in commands[-LAST_COMMANDS:]]
    return view


def format_line(view: Json) -> str:
    """One terminal as a line of text."""
    state = describe_ending(view)
    if view["running"]:
        state = _describe_state(view)
    return f"{view['id']}  {printable_line(str(view['name']), 30)}  {state}  pid {view['pid']}  {view['cwd']}{_last(view)}"


def describe_ending(view: Json) -> str:
    if view["exit_code"] is not None:
        return f"exit code {view['exit_code']}"
    return f"ended by {view['signal']}" if view["signal"] else "ended"


def owner(owner: Owner) -> Json:
    return {"person": owner.person, "name": owner.name, "workspace": owner.workspace}


def request_json(asks: InputRequest) -> Json:
    return {"prompt": asks.prompt, "sure": asks.sure, "secret": asks.secret}


def command_json(item: Command) -> Json:
    return {
        "line": item.line,
        "exit_code": item.exit_code,
        "duration_ms": item.duration_ms,
        "running": item.end is None,
    }


def _describe_state(view: Json) -> str:
    asks = view.get("waiting_for_input")
    if isinstance(asks, dict):
        return f"waiting for input: {printable_line(str(asks['prompt']), 60)}"
    if view["taken_over_by"]:
        return f"running, taken over by {view['taken_over_by']}"
    runs = view["foreground"]
    return f"running {runs['name']}" if view["busy"] and isinstance(runs, dict) else "idle"


def _last(view: Json) -> str:
    commands = view.get("commands")
    if not isinstance(commands, list) or not commands or not isinstance(last := commands[-1], dict):
        return ""
    code = "runs" if last["running"] else f"exit code {last['exit_code']}"
    return f"  last: {printable_line(str(last['line'] or ''), 50)} ({code})"


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
