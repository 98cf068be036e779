"""search_terminal_buffer: search a terminal's output with a regular expression.

The search itself is in terminal/output/.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Json, Result
from handrail.terminal.output.output_search import Match, search_tail
from handrail.terminal.ripgrep import NoRipgrep
from handrail.terminal.safe_regex import DIALECT, BadPattern
from handrail.terminal.thread_pool import AGENTS
from handrail.tools.results import Format, Input, answer, count_text, printable_line
from handrail.tools.terminals.get_terminal_buffer import mask_result
from handrail.tools.terminals.terminal_lookup import FoundTerminal, reading_claim
from handrail.tools.tool_context import ToolContext

LINE_CHARS = 1000
"""Characters returned of one line."""
MOST_CHARS = 30_000
"""Characters of one answer: more would fill a model's context."""


class SearchTerminalBufferInput(Input):
    terminalId: Annotated[str, Field(description="As list_tracked_terminals names it.")]  # noqa: N815
    pattern: Annotated[
        str,
        Field(
            min_length=1,
            description=f"A regular expression, matched against each line of text ({DIALECT}).",
        ),
    ]
    context: Annotated[int, Field(ge=0, le=20, description="Lines to show around each match.")] = 0
    max_results: Annotated[int, Field(ge=1, le=1000, description="Matches to show.")] = 100
    case_insensitive: Annotated[bool, Field(description="Ignore upper and lower case.")] = False
    response_format: Format = "text"


class SearchTerminalBufferOutput(BaseModel, defer_build=True):
    terminal_id: str | None = None
    matches: list[dict[str, Any]] | None = Field(
        None,
        description="Each: line_number, offset (for get_terminal_buffer's `after`), text, before, after.",
    )
    more: bool | None = Field(None, description="There are more matches than are told.")
    dropped_bytes: int | None = Field(
        None, description="Bytes at the start that are no longer kept, so not searched."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan(Plan):
    known: FoundTerminal
    input: SearchTerminalBufferInput


class SearchTerminalBuffer(Tool[SearchTerminalBufferInput, SearchPlan]):
    """Search the output of a terminal."""

    name = "search_terminal_buffer"
    title = "Search terminal"
    description = (
        "Search all that a terminal printed and is still kept, running or ended, line by line with escapes resolved. "
        "Each match comes with its line number and the byte offset from which get_terminal_buffer reads on."
    )
    input = SearchTerminalBufferInput
    output = SearchTerminalBufferOutput
    reads_only = True
    repeats = True

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def display(self, input: SearchTerminalBufferInput) -> str:
        return f"Search terminal {input.terminalId} for {printable_line(input.pattern, 60)}"

    async def plan(self, input: SearchTerminalBufferInput, caller: Caller) -> SearchPlan:
        known = await self._context.to_read(input.terminalId, caller)
        if known.forgotten:
            raise Refusal(
                f"The output of terminal {known.id} was deleted, as configured, because of its age or size."
            )
        return SearchPlan(
            claims=(reading_claim(known, caller),), bound={"terminal": known.id}, known=known, input=input
        )

    async def run(self, plan: SearchPlan, call: CallReport) -> Result:
        params, tail = plan.input, plan.known.tail
        try:
            found = await search_tail(
                tail,
                params.pattern,
                context=params.context,
                max_results=params.max_results,
                case_insensitive=params.case_insensitive,
                room=AGENTS,
            )
        except (BadPattern, NoRipgrep) as problem:
            raise Refusal(str(problem)) from None
        shown = _cut(found.matches)
        more = found.more or len(shown) < len(found.matches)
        data: Json = {
            "terminal_id": plan.known.id,
            "matches": [_match(item) for item in shown],
            "more": more,
            "dropped_bytes": tail.first,
        }
        return mask_result(answer(_words(shown, more), data, params.response_format), plan.known.nonce)


def _cut(matches: tuple[Match, ...]) -> list[Match]:
    """The first matches that fit into one answer."""
    shown: list[Match] = []
    room = MOST_CHARS
    for item in matches:
        room -= sum(min(len(line), LINE_CHARS) for line in (*item.before, item.text, *item.after))
        if room < 0 and shown:
            break
        shown.append(item)
    return shown


def _match(item: Match) -> Json:
    return {
        "line_number": item.line_number,
        "offset": item.offset,
        "text": item.text[:LINE_CHARS],
        "before": [line[:LINE_CHARS] for line in item.before],
        "after": [line[:LINE_CHARS] for line in item.after],
    }


def _words(shown: list[Match], more: bool) -> str:
    if not shown:
        return "No line matches."
    lines = "\n".join(_lines(item) for item in shown)
    rest = ", and more: narrow the pattern, or raise max_results" if more else ""
    return f"{lines}\n[{count_text(len(shown), 'match')}{rest}]"


def _lines(item: Match) -> str:
    before = [f"  {line[:LINE_CHARS]}" for line in item.before]
    after = [f"  {line[:LINE_CHARS]}" for line in item.after]
    return "\n".join([*before, f"{item.line_number}: {item.text[:LINE_CHARS]}", *after])
