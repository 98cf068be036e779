"""Routes about terminals: list, open, look, close."""

import contextlib
from typing import Annotated

import anyio
from fastapi import APIRouter, BackgroundTasks, HTTPException, Query, Request

from handrail.keeper.protocol import Report
from handrail.server.rooms import Rooms
from handrail.server.routes.named import found, fresh_view, view_of, views_of
from handrail.server.routes.person import by, person_of
from handrail.server.shape import Position
from handrail.server.terminal_views import closed_view, terminal_detail
from handrail.server.terminal_wire import Closed, OpenBody, TerminalDetail, TerminalView
from handrail.store.event import TerminalClosed
from handrail.store.value import Owner, TerminalKind
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.open_shell import BadOpening, open_shell, shell_for
from handrail.terminal.terminal import Terminal

WINDOW_SECONDS = 5.0
"""For the window of a `handrail shell` to come: one that never does leaves nothing running."""
_SHOWN_BY_PAGE = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


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
        listed = await rooms.records.terminals(running, tuple(of) if of else None, before, limit)
        return await views_of(rooms, listed, person_of(request))

    @router.post("/terminals", status_code=201)
    async def open_terminal(body: OpenBody, request: Request, later: BackgroundTasks) -> TerminalView:
        terminal = await _open(rooms, body, str(by(request)))
        if body.of == "shell" and not body.keep:
            later.add_task(_expect_window, terminal, rooms.means.grace)
        return await fresh_view(rooms, terminal.id)

    @router.get("/terminals/{id}")
    async def terminal(id: str) -> TerminalDetail:
        record = await found(rooms, id)
        marks = await rooms.marked.of(id, record.nonce, rooms.terminals.tail(id))
        typed = await rooms.records.typed(id)
        return terminal_detail(view_of(rooms, record), record.nonce, marks, typed)

    @router.post("/terminals/{id}/close")
    async def close(id: str, request: Request) -> Closed:
        await found(rooms, id)
        live, report = rooms.terminals.get(id), None
        if live is not None and live.swept is None:
            await rooms.journal.committed(
                rooms.journal.append(TerminalClosed(terminal=id, by=str(by(request))))
            )
            report = await live.stop(rooms.means.grace)
        return closed_view(await fresh_view(rooms, id, live), report, _said(report))

    return router


async def _open(rooms: Rooms, body: OpenBody, opener: str) -> Terminal:
    means = rooms.means
    whole = body.env if body.of == "shell" else {**means.environment, **_SHOWN_BY_PAGE, **body.env}
    shell, *args = body.command or (body.shell or shell_for(means.shell, whole), *body.args)
    try:
        return await open_shell(
            rooms.terminals,
            shell=shell,
            args=args,
            cwd=body.cwd or whole.get("HOME") or "/",
            env=whole,
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


async def _expect_window(terminal: Terminal, grace: float) -> None:
    with anyio.move_on_after(WINDOW_SECONDS):
        while not terminal.attached and terminal.exit is None:
            await terminal.changed()
        return
    with contextlib.suppress(KeeperError):  # it went with its keeper
        await terminal.stop(grace)


def _said(report: Report | None) -> str:
    if report is None:
        return "It had ended before."
    names = [f"{process.name} ({process.pid})" for process in report.stopped]
    more = f" and {report.more} more" if report.more else ""
    left = f" Could not be ended: {', '.join(str(p.pid) for p in report.left)}." if report.left else ""
    return f"Stopped {', '.join(names) or 'nothing: it was ending by itself'}{more}.{left}"
