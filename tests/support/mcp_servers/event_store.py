"""The events of resumable streams, in memory, for servers over streamable HTTP."""

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage


class MemoryEventStore(EventStore):
    """The events of all streams, so that a client can come back."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._kept.append((stream_id, message))
        return str(len(self._kept))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        number = int(last_event_id)
        stream, _ = self._kept[number - 1]
        for later, (owner, message) in enumerate(self._kept[number:], number + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(later)))
        return stream
