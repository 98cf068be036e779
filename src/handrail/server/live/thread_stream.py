"""WebSocket `/api/threads/{id}/live`: streams the changes of one thread.

Holds no queue: changes since the last message are merged into one, at the client's pace.
"""

import anyio
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from handrail.server.api.thread_models import flow_view, speaker_of
from handrail.server.context import ServerContext
from handrail.server.live.event_stream import accept, cancel_when_closed
from handrail.store.threads.live_thread import ThreadChanges
from handrail.store.values import Position

NO_THREAD = 4404


def sockets(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.websocket("/threads/{id}/live")
    async def live(socket: WebSocket, id: str, after: Position = 0) -> None:
        speaker = ""

        async def send(flow: ThreadChanges) -> None:
            nonlocal speaker
            speaker = speaker_of(flow.state, speaker)
            await socket.send_text(flow_view(flow, speaker).model_dump_json())

        await accept(socket)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_closed, socket, group.cancel_scope)
                if (record := await context.records.threads.get(id)) is not None:
                    speaker = speaker_of((await context.threads.snapshot(id, 1)).state, record.agent)
                    await context.threads.follow(id, after, send)
                await socket.close(NO_THREAD, "There is no such thread, or no longer.")
                group.cancel_scope.cancel()
        except* WebSocketDisconnect:
            pass  # the client disconnected during a send

    return router
