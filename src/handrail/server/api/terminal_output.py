"""Routes of terminal output: read, download, search."""

import re
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response, StreamingResponse

from handrail.server.api.terminal_models import FoundView, OutputView, found_view, output_view, screen_view
from handrail.server.api.terminals import get_record
from handrail.server.context import ServerContext
from handrail.store.terminals import TerminalRecord
from handrail.store.values import Position
from handrail.terminal.output.output_search import search_tail
from handrail.terminal.output.paging import read_page
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.screen import RenderedScreen, render_screen
from handrail.terminal.output.tail import Tail
from handrail.terminal.ripgrep import NoRipgrep
from handrail.terminal.safe_regex import BadPattern
from handrail.terminal.thread_pool import PEOPLE

PIECE = 256 * 1024
"""Bytes of a download read at a time. Bounds memory."""
Mode = Literal["text", "raw", "screen"]


def routes(server: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/terminals/{id}/output", response_model=OutputView)
    async def output(
        id: str,
        mode: Mode = "text",
        after: Position | None = None,
        lines: Annotated[int | None, Query(ge=1, le=100_000)] = None,
        download: bool = False,
    ) -> OutputView | Response:
        record = await _get_kept_record(server, id)
        tail = server.terminals.tail(id)
        shown = await _render_screen(server, record, tail) if mode == "screen" else None
        if download:
            return _download_response(
                record,
                _encode_screen(shown) if shown else _read_pieces(tail, mode, after or tail.first),
                mode,
            )
        if shown is not None:
            return screen_view(shown, tail)
        kind = "raw" if mode == "raw" else "text"
        return output_view(
            await anyio.to_thread.run_sync(partial(read_page, tail, after=after, lines=lines, mode=kind))
        )

    @router.get("/terminals/{id}/search")
    async def search_output(
        id: str,
        pattern: Annotated[str, Query(min_length=1, max_length=10_000)],
        raw: bool = False,
        case_insensitive: bool = False,
        context: Annotated[int, Query(ge=0, le=100)] = 0,
        max_results: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> FoundView:
        await _get_kept_record(server, id)
        try:
            matches = await search_tail(
                server.terminals.tail(id),
                pattern,
                raw=raw,
                context=context,
                max_results=max_results,
                case_insensitive=case_insensitive,
            )
        except BadPattern as problem:
            raise HTTPException(422, str(problem)) from None
        except NoRipgrep as problem:
            raise HTTPException(503, str(problem)) from None
        return found_view(matches)

    return router


async def _get_kept_record(context: ServerContext, id: str) -> TerminalRecord:
    record = await get_record(context, id)
    if record.forgotten_at is not None:
        raise HTTPException(
            404,
            f"The output of terminal {id} was deleted, to keep within [terminal] keep_days and keep_bytes.",
        )
    return record


async def _render_screen(context: ServerContext, record: TerminalRecord, tail: Tail) -> RenderedScreen:
    live = context.terminals.get(record.id)
    cols, rows = live.size if live else (record.cols, record.rows)
    return await PEOPLE.run(render_screen, tail, cols, rows)


def _download_response(record: TerminalRecord, pieces: AsyncGenerator[bytes], mode: Mode) -> Response:
    name = re.sub(r"[^A-Za-z0-9]+", "-", record.name).strip("-")[:40] or "terminal"
    kind, end = ("application/octet-stream", "raw") if mode == "raw" else ("text/plain; charset=utf-8", "txt")
    headers = {"content-disposition": f'attachment; filename="{name}-{record.id}.{end}"'}
    return StreamingResponse(pieces, media_type=kind, headers=headers)


async def _read_pieces(tail: Tail, mode: Mode, after: int) -> AsyncGenerator[bytes]:
    """Yield the output up to the current end. Later output is not included."""
    end = tail.end
    while after < end:
        data, following = await anyio.to_thread.run_sync(_read_piece, tail, after, min(PIECE, end - after))
        if following == after:
            return
        is_last = following >= end
        if (
            mode != "raw" and not is_last and b"\n" in data
        ):  # whole lines: a carriage return overwrites within a line
            following -= len(data) - data.rindex(b"\n") - 1
            data = data[: data.rindex(b"\n") + 1]
        yield data if mode == "raw" else (await anyio.to_thread.run_sync(plain_text, data)).encode()
        after = following


def _read_piece(tail: Tail, after: int, limit: int) -> tuple[bytes, int]:
    reading = read_page(tail, after=after, mode="raw", limit=limit)
    assert isinstance(reading.data, bytes)
    return reading.data, reading.next


async def _encode_screen(shown: RenderedScreen) -> AsyncGenerator[bytes]:
    yield "".join(f"{line}\n" for line in shown.lines).encode()
