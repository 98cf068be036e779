"""WebSocket `/api/live`: streams journal entries from a cursor, at the client's pace and without a queue.

Between them come the clients and the editors that run now, each time complete: they are no facts, so the journal does
not have them. A message without any of these is a heartbeat.
Also decides which fields of an event are hidden from a client without `approves`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import anyio
from fastapi import APIRouter, WebSocket

from handrail.gate.result_review import hide_message, hide_output, hide_result
from handrail.server.access import Person
from handrail.server.api.call_models import LiveEntries
from handrail.server.api.client_models import ClientView, build_client_views
from handrail.server.api.editor_models import EditorView, build_editor_views
from handrail.server.api.models import now_ms
from handrail.server.api.terminal_models import TerminalView
from handrail.server.context import ServerContext, person_of
from handrail.server.guard import SUBPROTOCOL
from handrail.store.events import (
    ActivityEnded,
    ActivityStarted,
    AgentEnded,
    ApprovalAnswered,
    ApprovalOpened,
    CallSettled,
    Entry,
    Event,
    OperationEnded,
    ServerEnded,
    TerminalAsked,
    TerminalOpened,
    TerminalTyped,
    ThreadOpened,
    ThreadRenamed,
)
from handrail.store.values import Position

HEARTBEAT_SECONDS = 3.0
"""Interval of heartbeats. A page that gets none for 10 s shows that the daemon hangs: its connection stays open."""


def sockets(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.websocket("/live")
    async def live(socket: WebSocket, after: Position = 0) -> None:
        async def send(
            entries: Sequence[Entry],
            clients: list[ClientView] | None = None,
            editors: list[EditorView] | None = None,
        ) -> None:
            shown = filter_entries(entries, person)
            message = LiveEntries(now=now_ms(), entries=shown, clients=clients, editors=editors)
            async with sending:
                await socket.send_text(message.model_dump_json())

        async def send_clients() -> None:
            if not context.clients.current:  # the page begins with none
                await context.clients.bell.wait()
            while True:
                bell = context.clients.bell
                await send((), build_client_views(context.clients.current, context.gate, person))
                await bell.wait()

        async def send_editors() -> None:
            sent: list[EditorView] = []  # the page begins with none
            while True:
                rung = context.editors.bell.next()
                views = build_editor_views(context.editors)
                if views != sent:
                    sent = views
                    await send((), None, views)
                await rung.wait()

        person, sending = person_of(socket), anyio.Lock()
        await accept(socket)
        with context.presence.following(person) as set_hidden:
            async with anyio.create_task_group() as group:
                group.start_soon(receive_visibility, socket, set_hidden, group.cancel_scope)
                group.start_soon(send_clients)
                group.start_soon(send_editors)
                group.start_soon(_send_heartbeats, send)
                await context.journal.follow(after, send)

    return router


async def _send_heartbeats(send: Callable[[Sequence[Entry]], Awaitable[None]]) -> None:
    """Send the first one immediately: from then on the page expects the next."""
    while True:
        await send(())
        await anyio.sleep(HEARTBEAT_SECONDS)


async def accept(socket: WebSocket) -> None:
    """Accept a WebSocket, with our subprotocol if the client offers it."""
    offered: list[str] = socket.scope.get("subprotocols", [])
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)


async def receive_visibility(
    socket: WebSocket, set_hidden: Callable[[bool], None], scope: anyio.CancelScope
) -> None:
    """Follow the messages `hidden` and `visible` of a page until it disconnects, then cancel the scope."""
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        if (text := message.get("text")) in ("hidden", "visible"):
            set_hidden(text == "hidden")
    scope.cancel()


async def cancel_when_closed(socket: WebSocket, scope: anyio.CancelScope) -> None:
    """Ignore incoming messages until the client disconnects, then cancel the scope."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()


_HIDDEN_FIELDS: dict[type[Event], dict[str, Any]] = {
    TerminalOpened: {"nonce": ""},
    TerminalTyped: {"text": None},
    TerminalAsked: {"prompt": ""},
    ApprovalAnswered: {"input": None, "content": None, "comments": ()},
    ThreadOpened: {"title": ""},
    ThreadRenamed: {"title": ""},
    OperationEnded: {"error": "", "cancelled_activities": ()},
    ActivityStarted: {"title": ""},
    ActivityEnded: {"detail": ""},
    AgentEnded: {"why": "", "said": ()},
    ServerEnded: {"why": "", "said": ()},
}


def filter_entries(entries: Iterable[Entry], person: Person) -> list[Entry]:
    """The entries without the fields that this person may not see."""
    if person.approves:
        return list(entries)
    return [replace(entry, event=_hide_fields(entry.event)) for entry in entries]


def filter_terminal(view: TerminalView, person: Person) -> TerminalView:
    """The view without the prompt text if this person may not see terminal output."""
    if person.approves or view.asks is None:
        return view
    return view.model_copy(update={"asks": view.asks.model_copy(update={"prompt": ""})})


def _hide_fields(event: Event) -> Event:
    if isinstance(event, ApprovalOpened):
        return replace(event, preview=hide_result(event.preview))
    if isinstance(event, CallSettled):
        return replace(event, result=hide_output(event.result), message=hide_message(event.by, event.message))
    hidden = _HIDDEN_FIELDS.get(type(event))
    return replace(event, **hidden) if hidden else event
