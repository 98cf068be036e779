"""Live sockets: facts as they happen, and the bytes of a terminal.

Owns two WebSockets, each a cursor that its follower moves at its own pace. It does not know who may connect
(guard.py) and holds no queue: a reader that stops costs nothing.
"""

from collections.abc import Sequence

import anyio
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketState

from handrail.server.guard import SUBPROTOCOL
from handrail.server.rooms import Rooms
from handrail.server.shape import Position
from handrail.server.views import now_ms
from handrail.server.wire import LiveEntries
from handrail.store.event import Entry


def sockets(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.websocket("/live")
    async def live(socket: WebSocket, after: Position = 0) -> None:
        async def send(entries: Sequence[Entry]) -> None:
            message = LiveEntries(now=now_ms(), entries=list(entries))
            await socket.send_text(message.model_dump_json())

        await _accept(socket)
        async with anyio.create_task_group() as group:
            group.start_soon(_until_closed, socket, group.cancel_scope)
            await rooms.journal.follow(after, send)

    @router.websocket("/terminals/{id}/attach")
    async def attach(socket: WebSocket, id: str, after: Position = 0) -> None:
        tail = rooms.terminals.tail(id)

        async def send(data: bytes, offset: int) -> None:
            await socket.send_bytes(offset.to_bytes(8, "big") + data)

        await _accept(socket)
        async with anyio.create_task_group() as group:
            group.start_soon(_until_closed, socket, group.cancel_scope)
            await tail.follow(after, send)
            group.cancel_scope.cancel()
        if socket.application_state is WebSocketState.CONNECTED:
            await socket.close(1000, "the terminal has ended")

    return router


async def _accept(socket: WebSocket) -> None:
    offered: list[str] = socket.scope.get("subprotocols", [])
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)


async def _until_closed(socket: WebSocket, scope: anyio.CancelScope) -> None:
    """Followers only listen; whatever they send is ignored until they leave."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()
