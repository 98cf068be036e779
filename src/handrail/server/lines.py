"""MCP as lines of JSON over a unix socket.

Owns framing: a line too long to be a message is skipped without being held, one that is no JSON-RPC is answered
as such. It does not know what the messages mean.
"""

import select
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

LINE_BYTES = 32 * 1024 * 1024
"""The longest message taken: far above any file our tools write, far below what would hurt."""
CHUNK = 64 * 1024
LISTENS_SECONDS = 5.0
"""For the answers of one that closed its own side; as long as the door waits for them."""
_BAD = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is not a JSON-RPC message."}}\n'
)
_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This message is longer than 32 MiB."}}\n'
)

Outbox = tuple[MemoryObjectSendStream[bytes], MemoryObjectReceiveStream[bytes]]


class Lines:
    """Whole lines out of a stream of bytes."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._held = bytearray()
        self._looked = 0

    async def read(self, most: int = LINE_BYTES) -> bytes | None:
        """The next line; None when it was longer than `most`. Raises EndOfStream."""
        while (end := self._held.find(b"\n", self._looked)) < 0:
            self._looked = len(self._held)
            if self._looked > most:
                await self._skip()
                return None
            self._held += await self._stream.receive(CHUNK)
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        self._looked = 0
        return line if len(line) <= most else None

    async def _skip(self) -> None:
        while True:
            self._held.clear()
            self._looked = 0
            chunk = await self._stream.receive(CHUNK)
            end = chunk.find(b"\n")
            if end >= 0:
                self._held += chunk[end + 1 :]
                return


class Waiting:
    """How many requests of one connection are still unanswered."""

    def __init__(self) -> None:
        self._count = 0
        self._none = anyio.Event()

    def asked(self, message: types.JSONRPCMessage) -> None:
        self._count += isinstance(message, types.JSONRPCRequest)

    def answered(self, message: types.JSONRPCMessage) -> None:
        self._count -= isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
        if self._count <= 0:
            self._none.set()

    async def wait_none(self) -> None:
        if self._count > 0:
            self._none = anyio.Event()
            await self._none.wait()


async def serve_lines(server: Server[Any], stream: SocketStream, lines: Lines, outbox: Outbox) -> None:
    """Serve one connection until it closes; calls it still waits for are cancelled with it."""
    incoming, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, replies = anyio.create_memory_object_stream[SessionMessage](0)
    waiting = Waiting()
    async with anyio.create_task_group() as group, incoming, outgoing:
        group.start_soon(_hear, stream, lines, incoming, outbox[0], waiting)
        group.start_soon(_tell, replies, outbox[0], waiting)
        group.start_soon(_post, outbox[1], stream, group.cancel_scope)
        await server.run(inbox, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _hear(
    stream: SocketStream,
    lines: Lines,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    answers: MemoryObjectSendStream[bytes],
    waiting: Waiting,
) -> None:
    async with incoming:
        while True:
            try:
                line = await lines.read()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                break
            if line is None:
                await answers.send(_LONG)
            elif not line.strip():
                continue
            elif (message := _parsed(line)) is None:
                await answers.send(_BAD)
            else:
                waiting.asked(message)
                await incoming.send(SessionMessage(message))
        if not _hung_up(stream):
            # It said all it had to say, as a pipe does, and still listens.
            with anyio.move_on_after(LISTENS_SECONDS):
                await waiting.wait_none()


def _hung_up(stream: SocketStream) -> bool:
    poll = select.poll()
    poll.register(stream.extra(SocketAttribute.raw_socket).fileno(), 0)
    return any(found & (select.POLLHUP | select.POLLERR) for _, found in poll.poll(0))


def _parsed(line: bytes) -> types.JSONRPCMessage | None:
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


async def _tell(
    replies: MemoryObjectReceiveStream[SessionMessage],
    outbox: MemoryObjectSendStream[bytes],
    waiting: Waiting,
) -> None:
    async with replies:
        async for reply in replies:
            waiting.answered(reply.message)
            await outbox.send(
                reply.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            )


async def _post(
    outbox: MemoryObjectReceiveStream[bytes], stream: SocketStream, scope: anyio.CancelScope
) -> None:
    try:
        async for line in outbox:
            await stream.send(line)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        scope.cancel()
