"""read_file, with numbered lines or an image; and read_text_file, the raw text for agents that read through ACP."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import anyio
import anyio.from_thread
import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Image, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.blobs import image_mime
from handrail.store.values import Caller, Json, PathPreview, Result
from handrail.tools.files.encoding import split_raw
from handrail.tools.files.line_window import CHUNK, LINE_MAX, BinaryError, Window, is_binary, read_window
from handrail.tools.results import Format, Input, answer, count_text, printable_path
from handrail.tools.workspace import Place, Workspace, describe_missing

LIMIT = 2000
"""Lines in one answer by default."""
IMAGE_MAX = 3_750_000
"""Bytes of an image: as Base64 they are 5 MB, the most that model providers take."""
_SMALL = 1 << 18
"""Bytes read on the event loop: a thread would cost more than the read."""
_HUGE = 50 << 20
"""Bytes above which the caller must select lines, and lines are not counted to the end."""


class ReadFileInput(Input):
    path: Annotated[str, Field(description="The file, relative to the workspace or absolute.")]
    offset: Annotated[int | None, Field(ge=1, description="The first line to read, counted from 1.")] = None
    limit: Annotated[int | None, Field(ge=1, description=f"How many lines; {LIMIT} unless given.")] = None
    response_format: Format = "text"


class ReadFileOutput(BaseModel, defer_build=True):
    path: str | None = Field(None, description="The file that was read.")
    content: str | None = Field(None, description="The lines as they are in the file, without numbers.")
    start_line: int | None = Field(None, description="Number of the first line in content.")
    end_line: int | None = Field(None, description="Number of the last line in content.")
    total_lines: int | None = Field(None, description="Lines in the file, when known.")
    truncated: bool | None = Field(None, description="There is more: lines after these, or longer lines.")
    size: int | None = Field(None, description="Bytes in the file.")
    mime_type: str | None = Field(
        None, description="For an image, which the answer holds as an image block: its type."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan(Plan):
    """A resolved file and the lines to read."""

    place: Place
    input: ReadFileInput


class ReadFile(Tool[ReadFileInput, ReadPlan]):
    """Read a text file, with line numbers."""

    name = "read_file"
    title = "Read file"
    description = (
        "Read a text file. Lines are numbered as `   12→text`; the number and arrow are not part of the file. "
        f"Gives the first {LIMIT} lines unless offset and limit say otherwise, and cuts lines after "
        f"{LINE_MAX} characters. A PNG, JPEG, GIF or WebP image is given as an image; other binary files are refused."
    )
    input = ReadFileInput
    output = ReadFileOutput
    reads_only = True
    shows_path = True

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    def display(self, input: ReadFileInput) -> str:
        return f"Read {printable_path(input.path)}"

    async def plan(self, input: ReadFileInput, caller: Caller) -> ReadPlan:
        place = Workspace.of(caller, self._own).place(input.path)
        return ReadPlan(
            claims=(place.claim("read"),),
            preview=PathPreview(path=place.path),
            bound=place.bound,
            place=place,
            input=input,
        )

    async def run(self, plan: ReadPlan, call: CallReport) -> Result:
        descriptor = plan.place.open_file()
        size = os.fstat(descriptor).st_size
        try:
            window = await _read(descriptor, size, plan)
        except BinaryError:
            image = await anyio.to_thread.run_sync(_read_image, descriptor, size, plan.place)
            call.show_image(image)
            return _image_result(plan, image)
        except OSError as error:
            raise Refusal(f"{plan.place.shown} cannot be read: {error.strerror}.") from None
        finally:
            os.close(descriptor)
        return _result(plan, window, size)


async def _read(descriptor: int, size: int, plan: ReadPlan) -> Window:
    params = plan.input
    if size > _HUGE and params.offset is None and params.limit is None:
        raise Refusal(
            f"{plan.place.shown} is huge ({size:,} bytes). Say which lines with offset and limit, or find "
            "them with search_content."
        )
    first, limit = params.offset or 1, params.limit or LIMIT
    if size <= _SMALL:
        return read_window(descriptor, first, limit, _HUGE, lambda: None)
    check = anyio.from_thread.check_cancelled
    return await anyio.to_thread.run_sync(read_window, descriptor, first, limit, _HUGE, check)


def _read_image(descriptor: int, size: int, place: Place) -> Image:
    """The content of an image. Raises Refusal for another binary file, and for an image that is too large."""
    mime = image_mime(os.pread(descriptor, 16, 0))
    if mime is None:
        raise Refusal(_is_binary(place, size))
    content = os.pread(descriptor, IMAGE_MAX + 1, 0)
    size = max(size, len(content))
    if size > IMAGE_MAX:
        raise Refusal(
            f"{place.shown} is an image of {size:,} bytes, and models take at most {IMAGE_MAX:,}. "
            "Make a smaller copy with execute_command and read that."
        )
    return Image(mime, content)


def _image_result(plan: ReadPlan, image: Image) -> Result:
    path, size = plan.place.shown, len(image.content)
    text = f"{path} is an image ({image.mime}, {size:,} bytes). It follows as an image block."
    return answer(text, {"path": path, "size": size, "mime_type": image.mime}, plan.input.response_format)


def _result(plan: ReadPlan, window: Window, size: int) -> Result:
    path, form = plan.place.shown, plan.input.response_format
    if not window.lines:
        return answer(_nothing(path, window), _data(path, window, size, more=False), form)
    numbers = range(window.first, window.last + 1)
    shown = [_numbered(number, line) for number, line in zip(numbers, window.lines, strict=True)]
    more = window.total is None or window.last < window.total
    notes = _notes(window, more=more)
    text = "\n".join([*shown, *(f"[{note}]" for note in notes)])
    return answer(text, _data(path, window, size, more=more or bool(window.cut)), form)


def _numbered(number: int, line: str) -> str:
    return f"{number:>6}→" + line.rstrip("\r\n")


def _data(path: str, window: Window, size: int, *, more: bool) -> Json:
    return {
        "path": path,
        "content": "".join(window.lines),
        "start_line": window.first if window.lines else None,
        "end_line": window.last if window.lines else None,
        "total_lines": window.total,
        "truncated": more,
        "size": size,
    }


def _nothing(path: str, window: Window) -> str:
    if window.total == 0:
        return f"{path} is empty."
    return f"{path} has only {count_text(window.total or 0, 'line')}; there is no line {window.first}."


def _notes(window: Window, *, more: bool) -> list[str]:
    notes: list[str] = []
    if window.cut:
        which = ", ".join(map(str, window.cut[:5])) + ("…" if len(window.cut) > 5 else "")
        notes.append(f"Cut after {LINE_MAX} characters: line {which}.")
    if window.replaced:
        notes.append("Some bytes are not UTF-8; they are shown as \ufffd.")
    if more:
        of = f" of {window.total:,}" if window.total is not None else ""
        why = ", as much as fits in one answer" if window.full else ""
        notes.append(
            f"Lines {window.first:,} to {window.last:,}{of}{why}. Go on with offset={window.last + 1}."
        )
    return notes


def _is_binary(place: Place, size: int) -> str:
    return (
        f"{place.shown} is a binary file ({size:,} bytes), not UTF-8 text, so it is not shown. "
        "Look at it with execute_command, such as `file`, `xxd` or `iconv`."
    )


MOST = 10 << 20
"""Bytes in one answer: it is held in memory, sent in one message and stored."""


class ReadTextFileInput(Input):
    path: Annotated[str, Field(description="The file.")]
    line: Annotated[int, Field(ge=1, description="The first line, counted from 1.")] = 1
    limit: Annotated[int | None, Field(ge=0, description="How many lines; all unless given.")] = None


class ReadTextFileOutput(BaseModel, defer_build=True):
    content: str | None = None
    describe_missing: bool | None = Field(None, description="There is no such file.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlan(Plan):
    """A resolved file and the lines to read."""

    place: Place
    input: ReadTextFileInput


class ReadTextFile(Tool[ReadTextFileInput, RawPlan]):
    """Read the text of a file, unchanged."""

    name = "read_text_file"
    title = "Read file"
    description = "Read the text of a file, as it is."
    input = ReadTextFileInput
    output = ReadTextFileOutput
    reads_only = True
    shows_path = True
    listed = False

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    def display(self, input: ReadTextFileInput) -> str:
        return f"Read {printable_path(input.path)}"

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
            raise Refusal(describe_missing(place), Result(text="", data={"missing": True}))
        descriptor = place.open_file()
        try:
            raw = await _read_bytes(descriptor, plan.input)
        except BinaryError:
            raise Refusal(f"{place.shown} is a binary file, not text, so it is not read.") from None
        except OSError as error:
            raise Refusal(f"{place.shown} cannot be read: {error.strerror}.") from None
        finally:
            os.close(descriptor)
        if len(raw) > MOST:
            raise Refusal(f"{place.shown}: {_TOO_MUCH}")
        return Result(text=_describe_read(place, raw), data={"content": raw.decode(errors="replace")})


_TOO_MUCH = f"this is more than {MOST:,} bytes, which are too many for one answer. Say which lines with `line` and `limit`."


def _describe_read(place: Place, raw: bytes) -> str:
    lines = raw.count(b"\n") + (not raw.endswith(b"\n") and bool(raw))
    return f"{count_text(lines, 'line')} of {place.shown}."


async def _read_bytes(descriptor: int, params: ReadTextFileInput) -> bytes:
    """Read the selected lines, up to one byte above MOST so that the caller can detect the excess."""
    if os.fstat(descriptor).st_size <= _SMALL:
        return _lines(descriptor, params, lambda: None)
    return await anyio.to_thread.run_sync(_lines, descriptor, params, anyio.from_thread.check_cancelled)


def _lines(descriptor: int, params: ReadTextFileInput, check: Callable[[], None]) -> bytes:
    kept, number = bytearray(), 1
    last = None if params.limit is None else params.line + params.limit
    chunk = os.read(descriptor, CHUNK)
    if is_binary(chunk):
        raise BinaryError
    while chunk and len(kept) <= MOST and (last is None or number < last):
        check()
        if number >= params.line and last is None:
            kept += chunk
        else:
            number = _keep(kept, chunk, number, params.line, last)
        chunk = os.read(descriptor, CHUNK)
    return bytes(kept[: MOST + 1])


def _keep(kept: bytearray, chunk: bytes, number: int, first: int, last: int | None) -> int:
    """Append the selected lines of a chunk; return the number of the line the chunk ends in."""
    for piece in split_raw(chunk):
        if last is not None and number >= last:
            break
        if number >= first:
            kept += piece
        number += piece.endswith(b"\n")
    return number
