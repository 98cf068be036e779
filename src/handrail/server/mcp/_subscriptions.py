"""`subscriptions/listen` of MCP 2026-07-28: the change notifications that a client asks for.

A stream gets changes of our tools and of the lists of all servers, and updates of the resources it names, from the servers
that own them. The SDK writes the streams; each is a listener on the bus of its client.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp.server.subscriptions import ListenHandler
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
    event_from_wire,
)

from handrail.gate.tool import Refusal
from handrail.server.mcp._client_link import Context, McpClientLink
from handrail.store.values import Json
from handrail.upstream.features import Features
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError
from handrail.upstream.servers import Servers

STREAMS_MAX = 16
"""Streams of one client. Bounds memory."""
UNSUBSCRIBE_SECONDS = 2.0
RESOURCES_MAX = 100
"""Resources that one stream names; more are not honoured."""
_LISTS = {
    "notifications/resources/list_changed": ResourcesListChanged(),
    "notifications/prompts/list_changed": PromptsListChanged(),
}


class ClientStreams:
    """The streams of one client. Implements the SDK's `SubscriptionBus`."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        self.serve = ListenHandler(self, max_subscriptions=STREAMS_MAX)

    async def publish(self, event: ServerEvent) -> None:
        self.send(event)

    def send(self, event: ServerEvent) -> None:
        for listener in list(self._listeners.values()):
            listener(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    @property
    def is_empty(self) -> bool:
        return not self._listeners


class Subscriptions:
    """The streams of all clients, by the keys of their connections."""

    def __init__(self, servers: Servers | None, features: Features | None) -> None:
        self._servers, self._features = servers, features
        self._streams: dict[str, ClientStreams] = {}
        self._wanted = Counter[tuple[str, str]]()
        """Streams that name a resource, by client and URI."""
        if servers is not None:
            servers.on_list_changed.append(self._note_list)

    def note_tools(self) -> None:
        """Other tools than before may be listed."""
        for streams in list(self._streams.values()):
            streams.send(ToolsListChanged())

    def _note_list(self, _server: str, method: str) -> None:
        event = _LISTS.get(method)
        if event is not None:
            for streams in list(self._streams.values()):
                streams.send(event)

    def note_resource(self, key: str, method: str, params: Json) -> None:
        """A server told one client about a resource."""
        event = event_from_wire(method, params)
        if event is not None and key in self._streams:
            self._streams[key].send(event)

    async def serve(
        self,
        key: str,
        link: McpClientLink | None,
        context: Context,
        params: types.SubscriptionsListenRequestParams,
        gone: anyio.Event | None,
    ) -> types.SubscriptionsListenResult:
        """Serve one stream until the client closes it, or leaves."""
        streams = self._streams.setdefault(key, ClientStreams())
        wanted = list(params.notifications.resource_subscriptions or ())[:RESOURCES_MAX]
        result = types.SubscriptionsListenResult()
        try:
            async with self._subscribed(link, wanted) as honoured, anyio.create_task_group() as group:
                if gone is not None:
                    group.start_soon(_cancel_when_gone, gone, group.cancel_scope)
                asked = params.notifications.model_copy(update={"resource_subscriptions": honoured or None})
                result = await streams.serve(context, params.model_copy(update={"notifications": asked}))
                group.cancel_scope.cancel()
        finally:
            if streams.is_empty and self._streams.get(key) is streams:
                del self._streams[key]
        return result

    @asynccontextmanager
    async def _subscribed(self, link: McpClientLink | None, uris: list[str]) -> AsyncGenerator[list[str]]:
        """Subscribe at the servers that own these resources, for the block; those of no server are not honoured."""
        honoured = list[str]()
        try:
            for uri in uris:
                if link is not None and await self._ask(link, "resources/subscribe", uri):
                    honoured.append(uri)
                    self._wanted[link.key, uri] += 1
            yield honoured
        finally:
            if link is not None:
                with anyio.move_on_after(UNSUBSCRIBE_SECONDS, shield=True):
                    await self._unsubscribe(link, honoured)

    async def _unsubscribe(self, link: McpClientLink, uris: list[str]) -> None:
        """Unsubscribe from the resources that no other stream of the client names."""
        self._wanted.subtract((link.key, uri) for uri in uris)
        unwanted = [uri for uri in uris if self._wanted[link.key, uri] <= 0]
        for uri in unwanted:
            del self._wanted[link.key, uri]
        for uri in unwanted:
            if not link.has_left:
                await self._ask(link, "resources/unsubscribe", uri)

    async def _ask(self, link: McpClientLink, method: str, uri: str) -> bool:
        if self._servers is None or self._features is None:
            return False
        try:
            owner = await self._features.find_owner(uri, link.key, link)
            async with self._servers.using(owner, link.key, link) as connection:
                await connection.request(method, {"uri": uri})
        except (RpcError, ConnectionLost, Refusal):
            return False
        return True


async def _cancel_when_gone(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


def is_change(method: str) -> bool:
    """Whether a notification goes to streams only, for a client of 2026-07-28."""
    return method in _LISTS or method == "notifications/resources/updated"
