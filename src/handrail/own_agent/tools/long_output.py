"""Long tool results: kept whole for the session, shortened for the model; and `read_output` to read the rest."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail.own_agent.tools.agent_tool import CallDisplay, Json, Result, RunningCall

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

READ_OUTPUT = "read_output"
LONG = 30_000
"""Characters of a result that the model gets unchanged; about 8,000 tokens."""
HEAD, TAIL = 14_000, 8_000
"""Characters of the beginning and the end of a longer result; these matter more than its middle."""
KEPT = 64_000_000
"""Characters of all kept results; bounds the memory. The oldest are dropped first."""


class Outputs:
    """The long results of one session, by handle."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._made = 0

    def short(self, text: str) -> str:
        """The text if it is short, else its beginning and end with a note on how to read the rest."""
        if len(text) <= LONG:
            return text
        handle = self._keep(text)
        head, tail = _head(text, HEAD), _tail(text, TAIL)
        left = len(text) - len(head) - len(tail)
        note = (
            f"[{left:,} of {len(text):,} characters are left out here. The whole is kept as {handle}: read_output "
            f'with handle "{handle}" gives the rest from an offset ({len(head):,} is where this stops), or the lines '
            "that hold a pattern.]"
        )
        return f"{head}\n\n{note}\n\n{tail}"

    def get(self, handle: str) -> str | None:
        return self._kept.get(handle)

    def _keep(self, text: str) -> str:
        self._made += 1
        handle = f"output-{self._made}"
        self._kept[handle] = text
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > KEPT:
            self._kept.popitem(last=False)
        return handle


def _head(text: str, most: int) -> str:
    """The beginning, cut at the end of a line if one is near."""
    end = text.rfind("\n", most * 3 // 4, most)
    return text[: end + 1 if end >= 0 else most]


def _tail(text: str, most: int) -> str:
    start = text.find("\n", len(text) - most, len(text) - most * 3 // 4)
    return text[start + 1 if start >= 0 else len(text) - most :]


MOST_MATCHES = 100
_LINE = 400
"""Characters shown of a matching line."""


class ReadOutputInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    handle: str = Field(description="As the shortened result names it.")
    offset: int = Field(0, ge=0, description="The character to begin at; the first is 0.")
    limit: int = Field(20_000, ge=1, le=LONG, description="Characters to give.")
    pattern: str = Field(
        "",
        max_length=1000,
        description=(
            "Give the lines that hold this text instead, with the offset of each. Plain text, upper and lower case "
            "alike, not a regular expression; `|` separates alternatives. Begins at `offset` too."
        ),
    )


class ReadOutput:
    """The `read_output` tool."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs

    @property
    def definition(self) -> ToolDefinition:
        return _define()

    def shown(self, input: Json) -> CallDisplay:
        pattern = input.get("pattern")
        about = (
            f"Search {input.get('handle')} for “{pattern}”"
            if pattern
            else f"Read on in {input.get('handle')}"
        )
        return CallDisplay(title=about[:200], kind="read")

    async def run(self, input: Json, call: RunningCall) -> Result:
        try:
            wish = ReadOutputInput.model_validate(input)
        except ValidationError as problem:
            error = problem.errors(include_url=False)[0]
            return _refused(f"`{'.'.join(map(str, error['loc']))}`: {error['msg']}.")
        text = self._outputs.get(wish.handle)
        if text is None:
            return _refused(f"Nothing is kept as {wish.handle!r} any more. Make the call again that gave it.")
        if wish.offset > len(text):
            return _refused(f"{wish.handle} has {len(text):,} characters.")
        return Result(text=_matching_lines(text, wish) if wish.pattern else _piece(text, wish))


@cache
def _define() -> ToolDefinition:
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415 - slow import

    return ToolDefinition(
        name=READ_OUTPUT,
        description=(
            "Read on in a result that was too long to give you whole: a piece of it from an offset, or its lines that "
            "hold a pattern. Prefer a pattern where you know what you look for."
        ),
        parameters_json_schema=ReadOutputInput.model_json_schema(),
    )


def _refused(sentence: str) -> Result:
    return Result(text=sentence, failed=True, ended="failed")


def _piece(text: str, wish: ReadOutputInput) -> str:
    end = min(len(text), wish.offset + wish.limit)
    then = "" if end == len(text) else f" Go on with offset {end}."
    return f"[Characters {wish.offset:,} to {end:,} of {len(text):,}.{then}]\n{text[wish.offset : end]}"


def _matching_lines(text: str, wish: ReadOutputInput) -> str:
    """The matching lines with their offsets. Plain text, because a regular expression could run for ever."""
    words = [word.casefold() for word in wish.pattern.split("|") if word]
    lines: list[str] = []
    at, size = wish.offset, 0
    for line in text[wish.offset :].splitlines(keepends=True):
        if any(word in line.casefold() for word in words):
            lines.append(f"{at}: {line.rstrip()[:_LINE]}")
            size += len(lines[-1])
        at += len(line)
        if len(lines) == MOST_MATCHES or size > wish.limit:
            break
    if not lines:
        return f"No line of {wish.handle} from offset {wish.offset:,} on holds {wish.pattern!r}."
    more = f"\n[There may be more: go on with offset {at}.]" if at < len(text) else ""
    return "\n".join(lines) + more
