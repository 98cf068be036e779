"""get_terminal_buffer: what a terminal printed, by cursor, by lines, by chunks, or as its screen shows it.

Owns the forms in which output is told. It does not know what escapes mean (terminal/screen.py) or where output lies.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.tool import Plan, Refusal, Tool
from handrail.store.event import Caller, Json, Result
from handrail.store.records import TypedRecord
from handrail.terminal.buffer import Reading, read
from handrail.terminal.screen import plain, render
from handrail.tools.answer import Format, Input, answer
from handrail.tools.facts import facts
from handrail.tools.known import Known, ending, is_inside, look, reading
from handrail.tools.pieces import mask, raw
from handrail.tools.reach import Reach

if TYPE_CHECKING:
    from handrail.gate.call import Call

MOST_BYTES = 32 * 1024
"""Of output in one answer: more would crowd out a model's context. What is cut is a cursor away."""
LINES = 200
"""Told when nothing is said about which."""
HISTORY = 20
"""Inputs told with the output."""


class GetTerminalBufferInput(Input):
    terminalId: Annotated[str, Field(description="As list_tracked_terminals names it.")]  # noqa: N815
    after: Annotated[
        int | None,
        Field(
            ge=0,
            description="A byte offset: only what came after it, oldest first. `next` is the one to go on from.",
        ),
    ] = None
    lastN: Annotated[  # noqa: N815
        int | None, Field(ge=1, le=10_000, description="Only the last N chunks, as the program wrote them.")
    ] = None
    lines: Annotated[
        int | None,
        Field(ge=1, le=10_000, description=f"Only the last lines; {LINES} when nothing else is said."),
    ] = None
    mode: Annotated[
        Literal["text", "raw", "screen"],
        Field(
            description="`text`: escapes and overwritten progress lines resolved. `raw`: every byte as written. `screen`: "
            "the screen as a person sees it now, for full-screen programs."
        ),
    ] = "text"
    asString: Annotated[  # noqa: N815
        bool, Field(description="False gives `chunks`, a list with the time of each, instead of `output`.")
    ] = True
    includeMetadata: Annotated[  # noqa: N815
        bool, Field(description="Add `terminal`: the facts that list_tracked_terminals tells.")
    ] = False
    response_format: Format = "text"


class GetTerminalBufferOutput(BaseModel):
    terminal_id: str | None = None
    output: str | None = Field(None, description="What it printed.")
    output_base64: str | None = Field(
        None,
        description="Mode raw, when the bytes are not valid UTF-8: exactly these bytes; `output` shows them replaced.",
    )
    chunks: list[dict[str, Any]] | None = Field(
        None,
        description="With asString false. Each: offset, at (milliseconds since 1970), text, base64 if it is no text.",
    )
    start: int | None = Field(None, description="The offset of the first byte told.")
    next: int | None = Field(None, description="Give this as `after` to go on exactly where this ends.")
    end: int | None = Field(
        None, description="All that was printed so far, in bytes; `next` < `end` means there is more."
    )
    dropped_bytes: int | None = Field(None, description="Bytes at the start that are no longer kept.")
    dropped_lines: int | None = Field(None, description="Lines among them.")
    left_out: int | None = Field(None, description="Bytes that were asked for and are not told here.")
    input_history: list[dict[str, Any]] | None = Field(
        None,
        description="What was typed into it (after `after`, else the last ones). Each: at, by, person, text (null when it "
        "was hidden), offset.",
    )
    running: bool | None = None
    exit_code: int | None = None
    signal: str | None = None
    cursor: list[int] | None = Field(None, description="Mode screen: column and row, from zero.")
    alternate_screen: bool | None = Field(None, description="Mode screen: a full-screen program has it.")
    window_title: str | None = None
    size: list[int] | None = Field(None, description="Mode screen: columns and rows.")
    forgotten: bool | None = Field(
        None, description="Its output was deleted, as configured, because of its age or size."
    )
    terminal: dict[str, Any] | None = Field(None, description="With includeMetadata.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferPlan(Plan):
    """Which terminal, for whom, and what of it."""

    known: Known
    caller: Caller
    input: GetTerminalBufferInput


class GetTerminalBuffer(Tool[GetTerminalBufferInput, BufferPlan]):
    """Reads what a terminal printed."""

    name = "get_terminal_buffer"
    title = "Read terminal"
    description = (
        "Read what a terminal printed, running or ended. To follow one, read with `after` set to the `next` of the "
        "reading before: nothing is missed or told twice. One answer holds at most 32 KiB; when `next` is smaller than "
        "`end`, ask again. In mode raw `output` is exactly what was written when it is valid UTF-8 (a character cut by the "
        "end is left for the next reading); otherwise output_base64 holds the bytes. To find something in a long output "
        "use search_terminal_buffer; to wait for something, wait_for_terminal."
    )
    input = GetTerminalBufferInput
    output = GetTerminalBufferOutput
    reads_only = True
    repeats = True

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def display(self, input: GetTerminalBufferInput) -> str:
        return f"Read terminal {input.terminalId}"

    async def plan(self, input: GetTerminalBufferInput, caller: Caller) -> BufferPlan:
        if sum(value is not None for value in (input.after, input.lastN, input.lines)) > 1:
            raise Refusal(
                "`after`, `lastN` and `lines` are three ways to say what to read. Give one of them."
            )
        known = await self._reach.to_read(input.terminalId, caller)
        return BufferPlan(
            claims=(reading(known, caller),),
            bound={"terminal": known.id},
            known=known,
            caller=caller,
            input=input,
        )

    async def run(self, plan: BufferPlan, call: "Call") -> Result:
        known, asked = plan.known, plan.input
        data = await (self._screen(known) if asked.mode == "screen" else self._output(known, asked))
        data |= {"terminal_id": known.id, "running": known.running is not None, **_exit(known)}
        data["input_history"] = await self._history(known, asked.after)
        if known.forgotten:
            data["forgotten"] = True
        if asked.includeMetadata:
            data["terminal"] = await self._facts(known, plan.caller)
        return answer(_words(known, data), data, asked.response_format)

    async def _screen(self, known: Known) -> Json:
        shown = await anyio.to_thread.run_sync(render, known.tail, *known.size)
        return {
            "output": "\n".join(shown.lines).rstrip("\n"),
            "cursor": [*shown.cursor],
            "alternate_screen": shown.alternate,
            "window_title": shown.title,
            "size": [*known.size],
            "next": known.tail.end,
        }

    async def _output(self, known: Known, asked: GetTerminalBufferInput) -> Json:
        found = await anyio.to_thread.run_sync(partial(_read, known, asked))
        told: Json = {
            "start": found.start,
            "end": found.end,
            "next": found.next,
            "dropped_bytes": found.first,
            "dropped_lines": found.lines_dropped,
            "left_out": found.left_out,
        }
        if not asked.asString:
            told["chunks"] = await anyio.to_thread.run_sync(_chunks, known, found, asked.mode)
            return told
        if isinstance(found.data, str):
            return told | {"output": found.data}
        piece = raw(
            mask(found.data, found.start, known.tail, known.nonce),
            final=known.running is None and found.next == found.end,
        )
        told |= {"output": piece.text, "next": found.start + piece.length}
        return told | ({"output_base64": piece.base64} if piece.base64 is not None else {})

    async def _history(self, known: Known, after: int | None) -> list[JsonValue]:
        typed = await self._reach.records.typed(known.id)
        wanted = typed if after is None else [item for item in typed if item.offset >= after]
        return [_typed(item) for item in wanted[-HISTORY:]]

    async def _facts(self, known: Known, caller: Caller) -> Json:
        known = await look(known)
        marks = await self._reach.marks(known)
        return facts(known, marks.commands if marks else (), private=not is_inside(known, caller))


def _read(known: Known, asked: GetTerminalBufferInput) -> Reading:
    lines = asked.lines if asked.after is not None or asked.lastN is not None else asked.lines or LINES
    mode = "raw" if asked.mode == "raw" or not asked.asString else "text"
    return read(known.tail, after=asked.after, chunks=asked.lastN, lines=lines, mode=mode, limit=MOST_BYTES)


def _chunks(known: Known, found: Reading, mode: str) -> list[JsonValue]:
    """The reading, cut where the program's writes were."""
    assert isinstance(found.data, bytes)
    data = mask(found.data, found.start, known.tail, known.nonce)
    edges = known.tail.pieces(found.start, found.next)
    begins = [(max(at, found.start), when) for at, when in edges] or [(found.start, None)]
    ends = [at for at, _ in begins[1:]] + [found.next]
    return [
        _chunk(data[at - found.start : end - found.start], at, when, mode)
        for (at, when), end in zip(begins, ends, strict=True)
        if end > at
    ]


def _chunk(data: bytes, at: int, when: int | None, mode: str) -> Json:
    if mode == "text":
        return {"offset": at, "at": when, "text": plain(data)}
    piece = raw(data, final=True)
    told: Json = {"offset": at, "at": when, "text": piece.text}
    return told | ({"base64": piece.base64} if piece.base64 is not None else {})


def _typed(item: TypedRecord) -> Json:
    return {"at": item.at, "by": item.by, "person": item.person, "text": item.text, "offset": item.offset}


def _exit(known: Known) -> Json:
    return {"exit_code": known.exit and known.exit.code, "signal": known.exit and known.exit.signal}


def _words(known: Known, data: Json) -> str:
    if known.forgotten:
        return f"The output of terminal {known.id} was deleted, as configured, because of its age or size ({ending(known.exit)})."
    chunks = data.get("chunks")
    body = str(data.get("output", ""))
    if isinstance(chunks, list):
        body = "".join(str(item["text"]) for item in chunks if isinstance(item, dict))
    return f"{body}\n[{'; '.join(_notes(known, data))}]"


def _notes(known: Known, data: Json) -> list[str]:
    notes = [f"terminal {known.id}", ending(known.exit)]
    if "end" not in data:
        return [*notes, f"next: {data['next']}"]
    notes.append(f"bytes {data['start']} to {data['next']} of {data['end']}")
    if data["dropped_bytes"]:
        notes.append(f"the first {data['dropped_bytes']:,} bytes are no longer kept")
    if data["left_out"]:
        notes.append(f"{data['left_out']:,} bytes left out")
    if data["next"] != data["end"]:
        notes.append("there is more")
    return [*notes, f"next: {data['next']}"]
