"""Routes of terminals: list, open, get, close, type, resize, take over, release."""

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import APIRouter, BackgroundTasks, HTTPException, Query, Request

from handrail.errors import Conflict
from handrail.server.access import Person
from handrail.server.api._terminal_search import search_terminals
from handrail.server.api.terminal_models import (
    CloseBody,
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
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.server.live.event_stream import filter_terminal
from handrail.store.events import TerminalClosed
from handrail.store.search_query import parse_query
from handrail.store.terminals import TerminalRecord
from handrail.store.values import Owner, Position, TerminalKind
from handrail.terminal.input.keys import UnknownKey, encode
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.open_shell import OpenRefused, default_shell, open_shell
from handrail.terminal.output.screen import render_screen
from handrail.terminal.terminal import InputSender, Report, Terminal, TypingRefused
from handrail.terminal.thread_pool import PEOPLE

SEARCHED = 1000
"""Terminals that a search looks at, the newest. Bounds its time."""
WINDOW_SECONDS = 5.0
"""How long a new `handrail shell` waits for its window. After that the shell is stopped, so that none is left over."""
_PAGE_ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/terminals")
    async def terminals(
        request: Request,
        running: bool = False,
        of: Annotated[list[TerminalKind] | None, Query()] = None,
        before: Position | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
        q: Annotated[str, Query(max_length=1000)] = "",
    ) -> list[TerminalView]:
        """Terminals, newest first. `q` is in the search language; its words are also found in their output."""
        most = SEARCHED if q.strip() else limit
        listed = await context.records.terminals.find(running, tuple(of) if of else None, before, most)
        views = await build_views(context, listed, person_of(request))
        if not q.strip():
            return views
        if not person_of(request).approves:
            raise HTTPException(403, "Only a person may search in the output of terminals.")
        search = partial(search_terminals, parse_query(q), views, context.terminals.tail, limit)
        return await anyio.to_thread.run_sync(search, abandon_on_cancel=True)

    @router.post("/terminals", status_code=201)
    async def open_terminal(body: OpenBody, request: Request, later: BackgroundTasks) -> TerminalView:
        terminal = await _open(context, body, str(actor_of(request)))
        if body.of == "shell" and not body.keep:
            later.add_task(_stop_without_window, terminal, context.settings.grace)
        return await load_fresh_view(context, terminal.id)

    @router.post("/terminals/close")
    async def close_several(body: CloseBody, request: Request) -> list[Closed]:
        match body.which:
            case "agent_gone":
                chosen = [live.id for live in context.terminals.live.values() if live.agent_gone]
        return await close_all(context, chosen, str(actor_of(request)))

    @router.get("/terminals/{id}")
    async def terminal(id: str) -> TerminalDetail:
        record = await get_record(context, id)
        marks = await context.marked.of(id, record.nonce, context.terminals.tail(id))
        typed = await context.records.terminals.typed(id)
        return terminal_detail(build_view(context, record), record.nonce, marks, typed)

    @router.post("/terminals/{id}/close")
    async def close(id: str, request: Request) -> Closed:
        return await _close(context, id, str(actor_of(request)))

    return router


async def _close(context: ServerContext, id: str, by: str) -> Closed:
    await get_record(context, id)
    live, report = context.terminals.get(id), None
    if live is not None and live.swept is None:
        await context.journal.committed(context.journal.append(TerminalClosed(terminal=id, by=by)))
        report = await live.stop(context.settings.grace)
    return closed_view(await load_fresh_view(context, id, live), report, _describe_report(report))


async def close_all(context: ServerContext, ids: Sequence[str], by: str) -> list[Closed]:
    """Close several terminals at the same time: each may take the whole grace."""
    closed: list[Closed] = []

    async def close(id: str) -> None:
        with contextlib.suppress(KeeperError, HTTPException):  # it has ended meanwhile
            closed.append(await _close(context, id, by))

    async with anyio.create_task_group() as group:
        for terminal in ids:
            group.start_soon(close, terminal)
    return closed


async def _open(context: ServerContext, body: OpenBody, opener: str) -> Terminal:
    settings = context.settings
    env = body.env if body.of == "shell" else {**settings.environment, **_PAGE_ENVIRONMENT, **body.env}
    shell, *args = body.command or (body.shell or default_shell(settings.shell, env), *body.args)
    try:
        return await open_shell(
            context.terminals,
            shell=shell,
            args=args,
            cwd=body.cwd or env.get("HOME") or "/",
            env=env,
            size=(body.cols, body.rows),
            of=body.of,
            name=body.name,
            owner=Owner(person=True, name=opener),
            max_bytes=settings.max_bytes,
            max_lines=settings.max_lines,
            grace=settings.grace,
            scripts=settings.scripts,
        )
    except OpenRefused as problem:
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


def sharing_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/terminals/{id}/input")
    async def type_input(id: str, body: InputBody, request: Request) -> TerminalView:
        live = await get_running(context, id)
        try:
            await live.type(
                await _encode_input(live, body), InputSender(person=True, name=str(actor_of(request)))
            )
        except TypingRefused as problem:
            raise Conflict(str(problem)) from None
        return await load_fresh_view(context, id)

    @router.post("/terminals/{id}/size")
    async def size(id: str, body: SizeBody) -> TerminalView:
        live = await get_running(context, id)
        if live.attached or not context.size_owners.can_resize(id, None):
            owner = "The window that is open on it" if live.attached else "The page it was typed in last"
            raise Conflict(f"{owner} owns the size of terminal {id}.")
        await live.resize(body.cols, body.rows)
        return await load_fresh_view(context, id)

    @router.post("/terminals/{id}/take")
    async def take(id: str, request: Request) -> TerminalView:
        live = await get_running(context, id)
        context.size_owners.release(id)  # the page that takes over sets the size next
        live.take(str(actor_of(request)), holds=True)
        return await load_fresh_view(context, id)

    @router.post("/terminals/{id}/release")
    async def release(id: str, request: Request) -> TerminalView:
        (await get_running(context, id)).release(str(actor_of(request)))
        return await load_fresh_view(context, id)

    return router


async def _encode_input(live: Terminal, body: InputBody) -> bytes:
    """Encode an input. The bytes of a cursor key depend on the screen's application-keys mode."""
    text = (body.text or "") + ("\r" if body.newline and body.text is not None else "")
    try:
        keys = encode(body.keys)
        if keys:
            shown = await PEOPLE.run(render_screen, live.tail, *live.size)
            keys = encode(body.keys, shown.application_keys)
    except UnknownKey as problem:
        raise HTTPException(422, str(problem)) from None
    if not text and not keys:
        raise HTTPException(422, "There is nothing to type. Give a text, or keys.")
    return text.encode() + keys


async def find_record(context: ServerContext, id: str) -> TerminalRecord | None:
    """A terminal's record, or None. Waits for the journal if the terminal was just opened."""
    record = await context.records.terminals.get(id)
    if record is None and context.terminals.get(id) is not None:
        await context.journal.committed(context.journal.head)
        record = await context.records.terminals.get(id)
    return record


async def get_record(context: ServerContext, id: str) -> TerminalRecord:
    record = await find_record(context, id)
    if record is None:
        raise HTTPException(404, f"There is no terminal {id}. `handrail terminals` lists what there is.")
    return record


def build_view(context: ServerContext, record: TerminalRecord, live: Terminal | None = None) -> TerminalView:
    live = live or context.terminals.get(record.id)
    return terminal_view(record, live, live.tail if live else context.terminals.tail(record.id))


async def build_views(
    context: ServerContext, records: Sequence[TerminalRecord], person: Person
) -> list[TerminalView]:
    """Build views for this person. Each one reads the spool directory, so it runs in a worker thread."""

    def build() -> list[TerminalView]:
        return [filter_terminal(build_view(context, record), person) for record in records]

    return await anyio.to_thread.run_sync(build)


async def get_running(context: ServerContext, id: str) -> Terminal:
    record = await get_record(context, id)
    live = context.terminals.get(id)
    if live is None or live.exit is not None:
        raise Conflict(f"Terminal {id} ({record.name}) has ended. Its output is kept; open another to go on.")
    return live


async def load_fresh_view(context: ServerContext, id: str, live: Terminal | None = None) -> TerminalView:
    """The view of a terminal after pending journal writes are committed."""
    await context.journal.committed(context.journal.head)
    return build_view(context, await get_record(context, id), live)
