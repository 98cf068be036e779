"""`subscriptions/listen` of MCP 2026-07-28: the change notifications that a client asks for.

A stream gets changes of our tools and of the lists of all servers, and updates of the resources it names, from the servers
that own them. A stream can name tasks of its client, too.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
    event_from_wire,
    event_matches,
    event_to_notification,
)

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.server.mcp._client_link import Context, McpClientLink, request_channel
from handrail.server.mcp.tasks import Tasks, check_declared
from handrail.store.values import Caller, Json
from handrail.upstream.features import Features
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError
from handrail.upstream.servers import Servers

STREAMS_MAX = 16
"""Streams of one client. Bounds memory."""
UNSUBSCRIBE_SECONDS = 2.0
RESOURCES_MAX = 100
"""Resources that one stream names; more are not honoured."""
TASKS_MAX = 100
"""Tasks that one stream names; more are not honoured."""
BACKLOG = 1024
"""Events that a stream holds for a client that does not read. Bounds memory."""
_LISTS = {
    "notifications/resources/list_changed": ResourcesListChanged(),
    "notifications/prompts/list_changed": PromptsListChanged(),
}


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task has ended, or asks its client something."""

    id: str


Event = ServerEvent | TaskChanged
Describe = Callable[[str], Awaitable[Json]]
"""The state of a task of the client, by its id."""


class ClientStreams:
    """The streams of one client."""

    def __init__(self) -> None:
        self._streams = set[MemoryObjectSendStream[Event]]()

    @property
    def is_empty(self) -> bool:
        return not self._streams

    def send(self, event: Event) -> None:
        """Put an event on every stream. One whose client does not read is ended: the client listens again."""
        for stream in list(self._streams):
            try:
                stream.send_nowait(event)
            except anyio.WouldBlock:
                self._streams.discard(stream)
                stream.close()

    async def serve(
        self, context: Context, honoured: types.SubscriptionFilter, tasks: list[str], describe: Describe
    ) -> None:
        """Serve one stream until it is ended: what is honoured first, then the tasks as they are, then the events."""
        if len(self._streams) >= STREAMS_MAX:
            raise MCPError(types.INTERNAL_ERROR, f"This client has {STREAMS_MAX} streams, which is the most.")
        send, receive = anyio.create_memory_object_stream[Event](BACKLOG)
        uris = frozenset(honoured.resource_subscriptions or ())
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        self._streams.add(send)
        try:
            params = types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
            await context.session.send_notification(
                types.SubscriptionsAcknowledgedNotification(params=params), context.request_id
            )
            for task in tasks:
                await _notify_of_task(context, await describe(task), meta)
            async for event in receive:
                if isinstance(event, TaskChanged):
                    if event.id in tasks:
                        await _notify_of_task(context, await describe(event.id), meta)
                elif event_matches(honoured, uris, event):
                    note = event_to_notification(event, meta)
                    await context.session.send_notification(note, context.request_id)
        finally:
            self._streams.discard(send)
            send.close()
            receive.close()


async def _notify_of_task(context: Context, state: Json, meta: Json) -> None:
    await request_channel(context).notify("notifications/tasks", {**state, "_meta": meta})


class Subscriptions:
    """The streams of all clients, by the keys of their connections."""

    def __init__(self, servers: Servers | None, features: Features | None, tasks: Tasks | None) -> None:
        self._servers, self._features, self._tasks = servers, features, tasks
        self._streams: dict[str, ClientStreams] = {}
        self._wanted = Counter[tuple[str, str]]()
        """Streams that name a resource, by client and URI."""
        if servers is not None:
            servers.on_list_changed.append(self._note_list)
        if tasks is not None:
            tasks.on_change.append(self._note_task)

    def note_tools(self) -> None:
        """Other tools than before may be listed."""
        for streams in list(self._streams.values()):
            streams.send(ToolsListChanged())

    def _note_list(self, _server: str, method: str) -> None:
        event = _LISTS.get(method)
        if event is not None:
            for streams in list(self._streams.values()):
                streams.send(event)

    def _note_task(self, id: str) -> None:
        for streams in list(self._streams.values()):
            streams.send(TaskChanged(id))

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
        caller: Caller,
        params: types.SubscriptionsListenRequestParams,
        gone: anyio.Event | None,
    ) -> types.SubscriptionsListenResult:
        """Serve one stream until the client closes it, or leaves."""
        asked = params.notifications
        tasks = await self._honour_tasks(context, caller, asked)

        async def describe(id: str) -> Json:
            assert self._tasks is not None
            return await self._tasks.describe(id, caller, context.protocol_version)

        streams = self._streams.setdefault(key, ClientStreams())
        wanted = list(asked.resource_subscriptions or ())[:RESOURCES_MAX]
        try:
            async with self._subscribed(link, wanted) as honoured, anyio.create_task_group() as group:
                if gone is not None:
                    group.start_soon(_cancel_when_gone, gone, group.cancel_scope)
                accepted = types.SubscriptionFilter(
                    tools_list_changed=asked.tools_list_changed or None,
                    prompts_list_changed=asked.prompts_list_changed or None,
                    resources_list_changed=asked.resources_list_changed or None,
                    resource_subscriptions=honoured or None,
                    **({"taskIds": tasks} if tasks else {}),
                )
                await streams.serve(context, accepted, tasks, describe)
                group.cancel_scope.cancel()
        finally:
            if streams.is_empty and self._streams.get(key) is streams:
                del self._streams[key]
        return types.SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: context.request_id})

    async def _honour_tasks(
        self, context: Context, caller: Caller, asked: types.SubscriptionFilter
    ) -> list[str]:
        """The tasks of this client among those that it names. Raises MCPError if it did not declare that it takes tasks."""
        named = (asked.model_extra or {}).get("taskIds")
        if self._tasks is None or not isinstance(named, list):
            return []
        check_declared(context)
        ids = [each for each in cast("list[object]", named)[:TASKS_MAX] if isinstance(each, str)]
        return [task for task in dict.fromkeys(ids) if await self._tasks.follow(task, caller)]

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
