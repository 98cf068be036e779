"""WebSocket `/api/terminals/{id}/attach`: streams output and state, and accepts keys and sizes.

Holds no queue: output is sent at the client's pace, and input frames are handled one after another. Input is never
logged.
"""

import contextlib
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from fastapi import APIRouter, WebSocket
from pydantic import ValidationError
from starlette.websockets import WebSocketDisconnect, WebSocketState

from handrail.errors import Unwritable
from handrail.server.api.models import Wire
from handrail.server.api.terminal_models import (
    AttachRefused,
    AttachSize,
    AttachState,
    TerminalView,
    terminal_view,
)
from handrail.server.api.terminals import find_record
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.server.device_guard import HIGH_RISK
from handrail.server.live.event_stream import accept
from handrail.store.terminals import TerminalRecord
from handrail.store.values import Position
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.paging import find_line_near_end, is_alternate_screen
from handrail.terminal.terminal import InputSender, NotReading, Terminal, TypingRefused

PIECE = 32 * 1024
"""Bytes written at a time. Several fit into the keeper's buffer for a program that reads slowly."""
READ_SECONDS = 2.0
"""How long a program may leave input unread before the rest is dropped and the client gets an error."""
RETRY_SECONDS = 0.02
NO_TERMINAL = 4404


def sockets(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.websocket("/terminals/{id}/attach")
    async def attach(
        socket: WebSocket, id: str, after: Position | None = None, tail: Position | None = None
    ) -> None:
        await accept(socket)
        record = await find_record(context, id)
        if record is None:
            await socket.close(NO_TERMINAL, "There is no such terminal.")
            return
        attachment = Attachment(socket, record, context)
        try:
            await attachment.run(after, tail)
            if WebSocketState.DISCONNECTED not in (socket.application_state, socket.client_state):
                await socket.close(1000, "the terminal has ended")
        except* WebSocketDisconnect:
            pass  # the client disconnected during a send

    return router


class Attachment:
    """One socket on one terminal, running or ended."""

    def __init__(self, socket: WebSocket, record: TerminalRecord, context: ServerContext) -> None:
        self._socket = socket
        self._record = record
        self._rooms = context
        self._live = context.terminals.get(record.id)
        self._tail = self._live.tail if self._live else context.terminals.tail(record.id)
        self._size_owners = context.size_owners
        self._typist = InputSender(person=True, name=str(actor_of(socket)))
        self._sending = anyio.Lock()
        self._sent: tuple[TerminalView, bool] | None = None

    async def run(self, after: int | None, reach: int | None) -> None:
        """Serve until the client disconnects, or the terminal has ended and all output is sent."""
        begin = after or 0
        if after is None and reach is not None:
            begin = find_line_near_end(self._tail, reach)
        alternate = await anyio.to_thread.run_sync(is_alternate_screen, self._tail, begin)
        await self._reload_ended_record()
        await self._send_state(begin, alternate)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive, group.cancel_scope)
                if self._live is not None:
                    group.start_soon(self._send_changes, self._live.changed)
                    group.start_soon(self._send_changes, self._size_owners.changed)
                await self._tail.follow(begin, self._send_output)
                await self._reload_ended_record()
                await self._send_state()
                group.cancel_scope.cancel()
        finally:
            self._size_owners.release(self._record.id, self)

    # Outgoing

    async def _send_output(self, data: bytes, offset: int) -> None:
        async with self._sending:
            await self._socket.send_bytes(offset.to_bytes(8, "big") + data)

    async def _send(self, message: Wire) -> None:
        async with self._sending:
            await self._socket.send_text(message.model_dump_json())

    async def _send_state(self, begin: int | None = None, alternate: bool | None = None) -> bool:
        """Send the state if it changed. Returns False, without awaiting anything, if it did not."""
        state, sizes = terminal_view(self._record, self._live, self._tail), self._can_resize()
        current = (_without_counters(state), sizes)
        if current == self._sent:
            return False
        self._sent = current
        await self._send(AttachState(state=state, sizes=sizes, begin=begin, alternate=alternate))
        return True

    async def _send_changes(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Send the state after every change. Checks again after each send, so no change during a send is lost."""
        while True:
            await self._reload_ended_record()
            while await self._send_state():
                pass
            await changed()

    async def _reload_ended_record(self) -> None:
        """Reload the record of an ended terminal: only the record has the end time.

        A terminal that ended while its record was read is not live, and the record does not have its end.
        """
        is_running = self._live is not None and self._live.exit is None
        if is_running or self._record.ended_at is not None:
            return
        with contextlib.suppress(Unwritable):
            await self._rooms.journal.committed(self._rooms.journal.head)
        self._record = await self._rooms.records.terminals.get(self._record.id) or self._record

    def _can_resize(self) -> bool:
        live = self._live
        if live is None or live.exit is not None or live.attached:
            return False
        return self._size_owners.can_resize(live.id, self)

    # Incoming

    async def _receive(self, scope: anyio.CancelScope) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                scope.cancel()
                return
            if (keys := message.get("bytes")) is not None:
                await self._type(keys)
            else:
                await self._resize(message.get("text") or "")

    async def _type(self, keys: bytes) -> None:
        if person_of(self._socket).limited:
            await self._send(AttachRefused(refused=HIGH_RISK, what="input"))
            return
        if self._live is None:
            await self._send(
                AttachRefused(refused="The terminal has ended: nothing can be typed.", what="input")
            )
            return
        self._size_owners.claim(self._live.id, self)
        for at in range(0, len(keys), PIECE):
            try:
                await self._type_piece(self._live, keys[at : at + PIECE])
            except TypingRefused as problem:
                left = len(keys) - at
                why = f"{problem} {left:,} of {len(keys):,} bytes were not typed."
                await self._send(AttachRefused(refused=why, what="input"))
                return

    async def _type_piece(self, live: Terminal, piece: bytes) -> None:
        """Write one piece. Retries while the program does not read; later input waits."""
        until = anyio.current_time() + READ_SECONDS
        while True:
            try:
                await live.type(piece, self._typist)
            except NotReading:
                if anyio.current_time() > until:
                    raise
                await anyio.sleep(RETRY_SECONDS)
            else:
                return

    async def _resize(self, text: str) -> None:
        try:
            message = AttachSize.model_validate_json(text)
        except ValidationError:
            why = 'Only {"size": [columns, rows]} is understood here; keys go in binary frames.'
            await self._send(AttachRefused(refused=why, what="message"))
            return
        if self._live is None or not self._can_resize():
            await self._send(AttachRefused(refused=_describe_size_owner(self._live), what="size"))
            return
        try:
            await self._live.resize(*message.size)
        except KeeperError as problem:
            await self._send(AttachRefused(refused=str(problem), what="size"))


def _without_counters(state: TerminalView) -> TerminalView:
    """The state without the fields that change with every byte of output."""
    return state.model_copy(update={"bytes": 0, "first": 0, "lines_dropped": 0, "last_output_at": None})


def _describe_size_owner(live: Terminal | None) -> str:
    if live is None or live.exit is not None:
        return "The terminal has ended: its size stays as it is."
    if live.attached:
        return "The window that is open on this terminal owns its size."
    return "Another page was typed in last, and owns the size: type here, or take the terminal over."
