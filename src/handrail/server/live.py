"""The live socket: facts as they happen.

Owns a cursor that its follower moves at its own pace. It does not know who may connect (guard.py) and holds no queue:
a reader that stops costs nothing. What terminals print has sockets of its own (attach.py).
"""

from collections.abc import Sequence

import anyio
from fastapi import APIRouter, WebSocket

from handrail.server.guard import SUBPROTOCOL
from handrail.server.rooms import Rooms
from handrail.server.routes.person import person_of
from handrail.server.shape import Position
from handrail.server.views import now_ms
from handrail.server.visible import visible
from handrail.server.wire import LiveEntries
from handrail.store.event import Entry


def sockets(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.websocket("/live")
    async def live(socket: WebSocket, after: Position = 0) -> None:
        async def send(entries: Sequence[Entry]) -> None:
            message = LiveEntries(now=now_ms(), entries=visible(entries, person))
            await socket.send_text(message.model_dump_json())

        person = person_of(socket)
        await accept(socket)
        with rooms.presence.following(person):
            async with anyio.create_task_group() as group:
                group.start_soon(until_closed, socket, group.cancel_scope)
                await rooms.journal.follow(after, send)

    return router


async def accept(socket: WebSocket) -> None:
    offered: list[str] = socket.scope.get("subprotocols", [])
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)


async def until_closed(socket: WebSocket, scope: anyio.CancelScope) -> None:
    """Followers only listen; whatever they send is ignored until they leave."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()
