"""read_text_file: the text of a file as it is, for hosts of agents that read through us.

Owns what a reading gives: the characters themselves, all or some lines of them. What an agent reads as a tool of its
own has numbers and cuts, and is files.py's.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio.from_thread
import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.value import Caller, PathPreview, Result
from handrail.tools.answer import Input, brief, some
from handrail.tools.files.lines import CHUNK, BinaryError, is_binary
from handrail.tools.files.text import split_raw
from handrail.tools.place import Place, missing
from handrail.tools.workspace import Workspace

MOST = 10 << 20
"""Bytes in one answer: it is held in memory, sent in one message and kept in the record."""
_SMALL = 1 << 18
"""Bytes that are read at once, on the loop: a thread would cost more than the reading."""


class ReadTextFileInput(Input):
    path: Annotated[str, Field(description="The file.")]
    line: Annotated[int, Field(ge=1, description="The first line, counted from 1.")] = 1
    limit: Annotated[int | None, Field(ge=0, description="How many lines; all unless given.")] = None


class ReadTextFileOutput(BaseModel):
    content: str | None = None
    missing: bool | None = Field(None, description="There is no such file.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlan(Plan):
    """A file, resolved, and the lines wanted of it."""

    place: Place
    input: ReadTextFileInput


class ReadTextFile(Tool[ReadTextFileInput, RawPlan]):
    """Gives the text of a file as it is."""

    name = "read_text_file"
    title = "Read file"
    description = "Read the text of a file, as it is."
    input = ReadTextFileInput
    output = ReadTextFileOutput
    reads_only = True
    listed = False

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    def display(self, input: ReadTextFileInput) -> str:
        return f"Read {brief(input.path)}"

    async def plan(self, input: ReadTextFileInput, caller: Caller) -> RawPlan:
        place = Workspace.of(caller, self._own).place(input.path)
        return RawPlan(
            claims=(place.claim("read"),),
            preview=PathPreview(path=place.path),
            bound=place.bound,
            place=place,
            input=input,
        )

    async def run(self, plan: RawPlan, call: CallReport) -> Result:
        place = plan.place
        if place.found is None:
            raise Refusal(missing(place), Result(text="", data={"missing": True}))
        descriptor = place.open_file()
        try:
            raw = await _read(descriptor, plan.input)
        except BinaryError:
            raise Refusal(f"{place.shown} is a binary file, not text, so it is not read.") from None
        except OSError as error:
            raise Refusal(f"{place.shown} cannot be read: {error.strerror}.") from None
        finally:
            os.close(descriptor)
        if len(raw) > MOST:
            raise Refusal(f"{place.shown}: {_TOO_MUCH}")
        return Result(text=_told(place, raw), data={"content": raw.decode(errors="replace")})


_TOO_MUCH = f"this is more than {MOST:,} bytes, which are too many for one answer. Say which lines with `line` and `limit`."


def _told(place: Place, raw: bytes) -> str:
    lines = raw.count(b"\n") + (not raw.endswith(b"\n") and bool(raw))
    return f"{some(lines, 'line')} of {place.shown}."


async def _read(descriptor: int, asked: ReadTextFileInput) -> bytes:
    """What was asked for; of more than may be given, one byte more."""
    if os.fstat(descriptor).st_size <= _SMALL:
        return _lines(descriptor, asked, lambda: None)
    return await anyio.to_thread.run_sync(_lines, descriptor, asked, anyio.from_thread.check_cancelled)


def _lines(descriptor: int, asked: ReadTextFileInput, check: Callable[[], None]) -> bytes:
    kept, number = bytearray(), 1
    last = None if asked.limit is None else asked.line + asked.limit
    chunk = os.read(descriptor, CHUNK)
    if is_binary(chunk):
        raise BinaryError
    while chunk and len(kept) <= MOST and (last is None or number < last):
        check()
        if number >= asked.line and last is None:
            kept += chunk
        else:
            number = _keep(kept, chunk, number, asked.line, last)
        chunk = os.read(descriptor, CHUNK)
    return bytes(kept[: MOST + 1])


def _keep(kept: bytearray, chunk: bytes, number: int, first: int, last: int | None) -> int:
    """Take the wanted lines of a chunk, which may begin and end within one; the number of the line it ends in."""
    for piece in split_raw(chunk):
        if last is not None and number >= last:
            break
        if number >= first:
            kept += piece
        number += piece.endswith(b"\n")
    return number
