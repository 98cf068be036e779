"""Routes of terminals: list, open, get, close, type, resize, take over, release."""

import contextlib
from collections.abc import Sequence
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import APIRouter, BackgroundTasks, HTTPException, Query, Request

from handrail.errors import Conflict
from handrail.server.access import Person
from handrail.server.api.terminal_models import (
    Closed,
    InputBody,
    OpenBody,
    SizeBody,
    TerminalDetail,
    TerminalView,
    closed_view,
    terminal_detail,
    terminal_view,
)
from handrail.server.context import Rooms, actor_of, person_of
from handrail.server.live.event_stream import filter_terminal
from handrail.store.events import TerminalClosed
from handrail.store.terminals import TerminalRecord
from handrail.store.values import Owner, Position, TerminalKind
from handrail.terminal.input.keys import UnknownKey, encode
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.open_shell import BadOpening, open_shell, shell_for
from handrail.terminal.output.screen import render
from handrail.terminal.terminal import Report, Terminal, TypingRefused, Typist
from handrail.terminal.thread_pool import PEOPLE

WINDOW_SECONDS = 5.0
"""How long a new `handrail shell` waits for its window. After that the shell is stopped, so that none is left over."""
_PAGE_ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/terminals")
    async def terminals(
        request: Request,
        running: bool = False,
        of: Annotated[list[TerminalKind] | None, Query()] = None,
        before: Position | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> list[TerminalView]:
        listed = await rooms.records.terminals.find(running, tuple(of) if of else None, before, limit)
        return await build_views(rooms, listed, person_of(request))

    @router.post("/terminals", status_code=201)
    async def open_terminal(body: OpenBody, request: Request, later: BackgroundTasks) -> TerminalView:
        terminal = await _open(rooms, body, str(actor_of(request)))
        if body.of == "shell" and not body.keep:
            later.add_task(_stop_without_window, terminal, rooms.means.grace)
        return await load_fresh_view(rooms, terminal.id)

    @router.get("/terminals/{id}")
    async def terminal(id: str) -> TerminalDetail:
        record = await get_record(rooms, id)
        marks = await rooms.marked.of(id, record.nonce, rooms.terminals.tail(id))
        typed = await rooms.records.terminals.typed(id)
        return terminal_detail(build_view(rooms, record), record.nonce, marks, typed)

    @router.post("/terminals/{id}/close")
    async def close(id: str, request: Request) -> Closed:
        await get_record(rooms, id)
        live, report = rooms.terminals.get(id), None
        if live is not None and live.swept is None:
            await rooms.journal.committed(
                rooms.journal.append(TerminalClosed(terminal=id, by=str(actor_of(request))))
            )
            report = await live.stop(rooms.means.grace)
        return closed_view(await load_fresh_view(rooms, id, live), report, _describe_report(report))

    return router


async def _open(rooms: Rooms, body: OpenBody, opener: str) -> Terminal:
    means = rooms.means
    env = body.env if body.of == "shell" else {**means.environment, **_PAGE_ENVIRONMENT, **body.env}
    shell, *args = body.command or (body.shell or shell_for(means.shell, env), *body.args)
    try:
        return await open_shell(
            rooms.terminals,
            shell=shell,
            args=args,
            cwd=body.cwd or env.get("HOME") or "/",
            env=env,
            size=(body.cols, body.rows),
            of=body.of,
            name=body.name,
            owner=Owner(person=True, name=opener),
            max_bytes=means.max_bytes,
            max_lines=means.max_lines,
            grace=means.grace,
            scripts=means.scripts,
        )
    except BadOpening as problem:
        raise HTTPException(422, str(problem)) from None


async def _stop_without_window(terminal: Terminal, grace: float) -> None:
    with anyio.move_on_after(WINDOW_SECONDS):
        while not terminal.attached and terminal.exit is None:
            await terminal.changed()
        return
    with contextlib.suppress(KeeperError):  # the keeper is gone, and the terminal with it
        await terminal.stop(grace)


def _describe_report(report: Report | None) -> str:
    if report is None:
        return "It had ended before."
    names = [f"{process.name} ({process.pid})" for process in report.stopped]
    more = f" and {report.more} more" if report.more else ""
    left = f" Could not be ended: {', '.join(str(p.pid) for p in report.left)}." if report.left else ""
    return f"Stopped {', '.join(names) or 'nothing: it was ending by itself'}{more}.{left}"


def sharing_routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.post("/terminals/{id}/input")
    async def type_input(id: str, body: InputBody, request: Request) -> TerminalView:
        live = await get_running(rooms, id)
        try:
            await live.type(await _encode_input(live, body), Typist(person=True, name=str(actor_of(request))))
        except TypingRefused as problem:
            raise Conflict(str(problem)) from None
        return await load_fresh_view(rooms, id)

    @router.post("/terminals/{id}/size")
    async def size(id: str, body: SizeBody) -> TerminalView:
        live = await get_running(rooms, id)
        if live.attached or not rooms.size_owners.can_resize(id, None):
            owner = "The window that is open on it" if live.attached else "The page it was typed in last"
            raise Conflict(f"{owner} owns the size of terminal {id}.")
        await live.resize(body.cols, body.rows)
        return await load_fresh_view(rooms, id)

    @router.post("/terminals/{id}/take")
    async def take(id: str, request: Request) -> TerminalView:
        live = await get_running(rooms, id)
        rooms.size_owners.release(id)  # the page that takes over sets the size next
        live.take(str(actor_of(request)), holds=True)
        return await load_fresh_view(rooms, id)

    @router.post("/terminals/{id}/release")
    async def release(id: str, request: Request) -> TerminalView:
        (await get_running(rooms, id)).release(str(actor_of(request)))
        return await load_fresh_view(rooms, id)

    return router


async def _encode_input(live: Terminal, body: InputBody) -> bytes:
    """Encode an input. The bytes of a cursor key depend on the screen's application-keys mode."""
    text = (body.text or "") + ("\r" if body.newline and body.text is not None else "")
    try:
        keys = encode(body.keys)
        if keys:
            shown = await PEOPLE.run(render, live.tail, *live.size)
            keys = encode(body.keys, shown.application_keys)
    except UnknownKey as problem:
        raise HTTPException(422, str(problem)) from None
    if not text and not keys:
        raise HTTPException(422, "There is nothing to type. Give a text, or keys.")
    return text.encode() + keys


async def find_record(rooms: Rooms, id: str) -> TerminalRecord | None:
    """A terminal's record, or None. Waits for the journal if the terminal was just opened."""
    record = await rooms.records.terminals.get(id)
    if record is None and rooms.terminals.get(id) is not None:
        await rooms.journal.committed(rooms.journal.head)
        record = await rooms.records.terminals.get(id)
    return record


async def get_record(rooms: Rooms, id: str) -> TerminalRecord:
    record = await find_record(rooms, id)
    if record is None:
        raise HTTPException(404, f"There is no terminal {id}. `handrail terminals` lists what there is.")
    return record


def build_view(rooms: Rooms, record: TerminalRecord, live: Terminal | None = None) -> TerminalView:
    live = live or rooms.terminals.get(record.id)
    return terminal_view(record, live, live.tail if live else rooms.terminals.tail(record.id))


async def build_views(rooms: Rooms, records: Sequence[TerminalRecord], person: Person) -> list[TerminalView]:
    """Build views for this person. Each one reads the spool directory, so it runs in a worker thread."""

    def build() -> list[TerminalView]:
        return [filter_terminal(build_view(rooms, record), person) for record in records]

    return await anyio.to_thread.run_sync(build)


async def get_running(rooms: Rooms, id: str) -> Terminal:
    record = await get_record(rooms, id)
    live = rooms.terminals.get(id)
    if live is None or live.exit is not None:
        raise Conflict(f"Terminal {id} ({record.name}) has ended. Its output is kept; open another to go on.")
    return live


async def load_fresh_view(rooms: Rooms, id: str, live: Terminal | None = None) -> TerminalView:
    """The view of a terminal after pending journal writes are committed."""
    await rooms.journal.committed(rooms.journal.head)
    return build_view(rooms, await get_record(rooms, id), live)
