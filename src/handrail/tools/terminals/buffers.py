"""get_terminal_buffer: what a terminal printed, by cursor, by lines, by chunks, or as its screen shows it.

Owns the forms in which output is told. It does not know what escapes mean (terminal/output/screen.py) or where output lies.
"""

from dataclasses import dataclass

import anyio.to_thread
from pydantic import JsonValue

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.records import TypedRecord
from handrail.store.value import Caller, Json, Result
from handrail.terminal.output.paging import Reading, read
from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.screen import render
from handrail.terminal.output.tail import Extent
from handrail.terminal.thread_pool import AGENTS
from handrail.tools.answer import answer
from handrail.tools.reach import Reach
from handrail.tools.terminals.buffer_shape import LINES, GetTerminalBufferInput, GetTerminalBufferOutput
from handrail.tools.terminals.facts import facts
from handrail.tools.terminals.known import Known, ending, is_inside, look, reading
from handrail.tools.terminals.pieces import blot, mask, raw

MOST_BYTES = 32 * 1024
"""Of output in one answer: more would crowd out a model's context. What is cut is a cursor away."""
HISTORY = 20
"""Inputs told with the output."""


QUICK_BYTES = 4096
"""Of news that are made into text at once: even hostile output takes no more than some milliseconds then."""


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

    async def run(self, plan: BufferPlan, call: CallReport) -> Result:
        known, asked = plan.known, plan.input
        data = await (self._screen(known) if asked.mode == "screen" else self._output(known, asked))
        data |= {"terminal_id": known.id, "running": known.running is not None, **_exit(known)}
        data["input_history"] = await self._history(known, asked.after)
        if known.forgotten:
            data["forgotten"] = True
        if asked.includeMetadata:
            data["terminal"] = await self._facts(known, plan.caller)
        return blot(answer(_words(known, data), data, asked.response_format), known.nonce)

    async def _screen(self, known: Known) -> Json:
        shown = await AGENTS.run(render, known.tail, *known.size)
        return {
            "output": "\n".join(shown.lines).rstrip("\n"),
            "cursor": [*shown.cursor],
            "alternate_screen": shown.alternate,
            "window_title": shown.title,
            "size": [*known.size],
            "next": known.tail.end,
        }

    async def _output(self, known: Known, asked: GetTerminalBufferInput) -> Json:
        # Bytes come from the page cache, at most 32 KiB, and little text is soon made: a thread would cost more.
        extent = None if asked.after is None else known.tail.extent
        if extent is not None and (asked.mode == "raw" or extent.end - (asked.after or 0) <= QUICK_BYTES):
            found = _read(known, asked, extent)
        else:
            found = await anyio.to_thread.run_sync(_read, known, asked, extent)
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
        if known.typed_to is not None and known.typed_to < (after or 0):
            return []  # as a reader by cursor mostly finds it
        typed = await self._reach.records.typed(known.id)
        wanted = typed if after is None else [item for item in typed if item.offset >= after]
        return [_typed(item) for item in wanted[-HISTORY:]]

    async def _facts(self, known: Known, caller: Caller) -> Json:
        known = await look(known)
        marks = await self._reach.marks(known)
        return facts(known, marks.commands if marks else (), private=not is_inside(known, caller))


def _read(known: Known, asked: GetTerminalBufferInput, extent: Extent | None) -> Reading:
    lines = asked.lines if asked.after is not None or asked.lastN is not None else asked.lines or LINES
    mode = "raw" if asked.mode == "raw" or not asked.asString else "text"
    return read(
        known.tail,
        after=asked.after,
        chunks=asked.lastN,
        lines=lines,
        mode=mode,
        limit=MOST_BYTES,
        extent=extent,
    )


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
