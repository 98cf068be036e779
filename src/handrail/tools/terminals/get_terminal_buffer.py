"""get_terminal_buffer: read a terminal's output by cursor, lines, chunks, or as a rendered screen.

Text is exact: bytes that are not UTF-8 are also returned as base64. The nonce of the shell's marks is masked,
so that an agent does not learn it and cannot forge marks.
"""

import base64
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.terminals import TypedRecord
from handrail.store.values import Caller, Json, Result
from handrail.terminal.output.paging import OutputPage, read_page
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.screen import render_screen
from handrail.terminal.output.tail import KeptRange, Tail
from handrail.terminal.thread_pool import AGENTS
from handrail.tools.results import Format, Input, answer
from handrail.tools.terminals.list_tracked_terminals import facts
from handrail.tools.terminals.terminal_lookup import (
    FoundTerminal,
    describe_exit,
    is_inside,
    look,
    reading_claim,
)
from handrail.tools.tool_context import ToolContext

LINES = 200
"""Lines returned when the input selects nothing else."""


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


class GetTerminalBufferOutput(BaseModel, defer_build=True):
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


MOST_BYTES = 32 * 1024
"""Bytes of output in one answer: more would fill a model's context. `next` leads to the rest."""
HISTORY = 20
"""Inputs returned with the output, newest last."""


QUICK_BYTES = 4096
"""Bytes converted to text on the event loop; even hostile output then takes a few milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferPlan(Plan):
    """The terminal, the caller and the requested part of the output."""

    known: FoundTerminal
    caller: Caller
    input: GetTerminalBufferInput


class GetTerminalBuffer(Tool[GetTerminalBufferInput, BufferPlan]):
    """Read the output of a terminal."""

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

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def display(self, input: GetTerminalBufferInput) -> str:
        return f"Read terminal {input.terminalId}"

    async def plan(self, input: GetTerminalBufferInput, caller: Caller) -> BufferPlan:
        if sum(value is not None for value in (input.after, input.lastN, input.lines)) > 1:
            raise Refusal(
                "`after`, `lastN` and `lines` are three ways to say what to read. Give one of them."
            )
        known = await self._context.to_read(input.terminalId, caller)
        return BufferPlan(
            claims=(reading_claim(known, caller),),
            bound={"terminal": known.id},
            known=known,
            caller=caller,
            input=input,
        )

    async def run(self, plan: BufferPlan, call: CallReport) -> Result:
        known, params = plan.known, plan.input
        data = await (self._screen(known) if params.mode == "screen" else self._output(known, params))
        data |= {"terminal_id": known.id, "running": known.running is not None, **_exit(known)}
        data["input_history"] = await self._history(known, params.after)
        if known.forgotten:
            data["forgotten"] = True
        if params.includeMetadata:
            data["terminal"] = await self._facts(known, plan.caller)
        return mask_result(answer(_words(known, data), data, params.response_format), known.nonce)

    async def _screen(self, known: FoundTerminal) -> Json:
        shown = await AGENTS.run(render_screen, known.tail, *known.size)
        return {
            "output": "\n".join(shown.lines).rstrip("\n"),
            "cursor": [*shown.cursor],
            "alternate_screen": shown.alternate,
            "window_title": shown.title,
            "size": [*known.size],
            "next": known.tail.end,
        }

    async def _output(self, known: FoundTerminal, params: GetTerminalBufferInput) -> Json:
        # At most 32 KiB from the page cache, and little text to convert: a thread would cost more.
        extent = None if params.after is None else known.tail.kept_range
        if extent is not None and (params.mode == "raw" or extent.end - (params.after or 0) <= QUICK_BYTES):
            reading = _read(known, params, extent)
        else:
            reading = await anyio.to_thread.run_sync(_read, known, params, extent)
        view: Json = {
            "start": reading.start,
            "end": reading.end,
            "next": reading.next,
            "dropped_bytes": reading.first,
            "dropped_lines": reading.lines_dropped,
            "left_out": reading.left_out,
        }
        if not params.asString:
            view["chunks"] = await anyio.to_thread.run_sync(_chunks, known, reading, params.mode)
            return view
        if isinstance(reading.data, str):
            return view | {"output": reading.data}
        piece = raw(
            mask(reading.data, reading.start, known.tail, known.nonce),
            final=known.running is None and reading.next == reading.end,
        )
        view |= {"output": piece.text, "next": reading.start + piece.length}
        return view | ({"output_base64": piece.base64} if piece.base64 is not None else {})

    async def _history(self, known: FoundTerminal, after: int | None) -> list[JsonValue]:
        if known.typed_to is not None and known.typed_to < (after or 0):
            return []  # the usual case for a reader that polls by cursor
        typed = await self._context.records.terminals.typed(known.id)
        wanted = typed if after is None else [item for item in typed if item.offset >= after]
        return [_typed_json(item) for item in wanted[-HISTORY:]]

    async def _facts(self, known: FoundTerminal, caller: Caller) -> Json:
        known = await look(known)
        marks = await self._context.marks(known)
        return facts(known, marks.commands if marks else (), private=not is_inside(known, caller))


def _read(known: FoundTerminal, params: GetTerminalBufferInput, extent: KeptRange | None) -> OutputPage:
    lines = params.lines if params.after is not None or params.lastN is not None else params.lines or LINES
    mode = "raw" if params.mode == "raw" or not params.asString else "text"
    return read_page(
        known.tail,
        after=params.after,
        chunks=params.lastN,
        lines=lines,
        mode=mode,
        limit=MOST_BYTES,
        extent=extent,
    )


def _chunks(known: FoundTerminal, reading: OutputPage, mode: str) -> list[JsonValue]:
    """Split the output at the program's writes."""
    assert isinstance(reading.data, bytes)
    data = mask(reading.data, reading.start, known.tail, known.nonce)
    edges = known.tail.pieces(reading.start, reading.next)
    begins = [(max(at, reading.start), when) for at, when in edges] or [(reading.start, None)]
    ends = [at for at, _ in begins[1:]] + [reading.next]
    return [
        _chunk(data[at - reading.start : end - reading.start], at, when, mode)
        for (at, when), end in zip(begins, ends, strict=True)
        if end > at
    ]


def _chunk(data: bytes, at: int, when: int | None, mode: str) -> Json:
    if mode == "text":
        return {"offset": at, "at": when, "text": plain_text(data)}
    piece = raw(data, final=True)
    view: Json = {"offset": at, "at": when, "text": piece.text}
    return view | ({"base64": piece.base64} if piece.base64 is not None else {})


def _typed_json(item: TypedRecord) -> Json:
    return {"at": item.at, "by": item.by, "person": item.person, "text": item.text, "offset": item.offset}


def _exit(known: FoundTerminal) -> Json:
    return {"exit_code": known.exit and known.exit.code, "signal": known.exit and known.exit.signal}


def _words(known: FoundTerminal, data: Json) -> str:
    if known.forgotten:
        return f"The output of terminal {known.id} was deleted, as configured, because of its age or size ({describe_exit(known.exit)})."
    chunks = data.get("chunks")
    body = str(data.get("output", ""))
    if isinstance(chunks, list):
        body = "".join(str(item["text"]) for item in chunks if isinstance(item, dict))
    return f"{body}\n[{'; '.join(_notes(known, data))}]"


def _notes(known: FoundTerminal, data: Json) -> list[str]:
    notes = [f"terminal {known.id}", describe_exit(known.exit)]
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


_LONGEST_CHARACTER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """Output bytes for JSON: `text` encodes to exactly these bytes, unless `base64` is set and holds them."""

    text: str
    base64: str | None
    length: int
    """Bytes consumed; an incomplete UTF-8 sequence at the end is left for the next read."""


def raw(data: bytes, *, final: bool) -> Raw:
    """Convert bytes for JSON. `final`: no output can follow, so an incomplete sequence is kept."""
    whole = data if final else data[: len(data) - _incomplete_length(data)]
    try:
        return Raw(text=whole.decode(), base64=None, length=len(whole))
    except UnicodeDecodeError:
        exact = base64.b64encode(data).decode()
        return Raw(text=data.decode(errors="replace"), base64=exact, length=len(data))


def mask(data: bytes, start: int, tail: Tail, nonce: str) -> bytes:
    """Mask the nonce in bytes read at `start`, including a nonce cut by either end."""
    if not nonce:
        return data
    secret, context = nonce.encode(), len(nonce) - 1
    before = _read_pieces(tail, start - min(context, start), start)
    after = _read_pieces(tail, start + len(data), start + len(data) + context)
    whole = (before + data + after).replace(secret, b"x" * len(secret))
    return whole[len(before) : len(before) + len(data)]


def mask_result(result: Result, nonce: str) -> Result:
    """Mask the nonce in a result, for a program that printed it as text.

    The process that runs in the shell can read the nonce anyway; the mask keeps it from other readers.
    """
    if not nonce or (nonce not in result.text and nonce not in str(result.data)):
        return result
    data = {name: _mask_value(value, nonce) for name, value in result.data.items()}
    return Result(text=result.text.replace(nonce, "x" * len(nonce)), data=data)


def _mask_value(value: JsonValue, nonce: str) -> JsonValue:
    match value:
        case str():
            return value.replace(nonce, "x" * len(nonce))
        case list():
            return [_mask_value(item, nonce) for item in value]
        case dict():
            return {name: _mask_value(item, nonce) for name, item in value.items()}
        case _:
            return value


def _incomplete_length(data: bytes) -> int:
    """Bytes at the end that start an incomplete UTF-8 sequence."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return back if need > back else 0
    return 0


def _read_pieces(tail: Tail, start: int, until: int) -> bytes:
    data, following = tail.read(start, until - start) if until > start else (b"", start)
    return data if following - len(data) == start else b""
