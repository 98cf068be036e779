"""One connection of a client: its requests, its notifications, and the queue of messages to it.

Everything that a client can make us hold is bounded: the queue to it, what it sends ahead, the errors it makes.
"""

import base64
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import anyio
from fastapi import HTTPException

from handrail import __version__
from handrail.server.ahp._client_actions import ClientActions
from handrail.server.ahp.ahp_host import AhpHost
from handrail.server.ahp.ahp_wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    NOT_PERMITTED,
    PARSE_ERROR,
    Obj,
    RpcError,
    choose_version,
    error_message,
    object_field,
    path_of_uri,
    result_message,
    text_field,
)
from handrail.server.ahp.channels import Origin
from handrail.server.ahp.contents import is_issued_scheme
from handrail.server.ahp.peer import Peer
from handrail.server.api.models import now_ms
from handrail.server.api.threads import resolve_workspace
from handrail.store.actor import EDITOR
from handrail.store.events import TerminalClosed
from handrail.store.values import Owner
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.open_shell import OpenRefused, default_shell, open_shell

QUEUE_BYTES = 16 * 1024 * 1024
QUEUE_MESSAGES = 20_000
"""Messages that a client has not read. One that reads too slowly is disconnected, and catches up when it reconnects."""
DRAINED_BYTES = 1024 * 1024
"""Below this, terminal output goes on."""
DRAIN_SECONDS = 1.0
"""How long terminal output waits for a client that reads slowly."""
PING_BYTES = 1000
"""Length of a ping at most: longer messages are not looked at for one."""
MOST_ERRORS = 50
"""Malformed messages after which a connection is closed."""
MOST_SUBSCRIPTIONS = 500
"""Subscriptions of one connection: bounds the work that it causes."""

_Method = Callable[[Obj], Awaitable[object]]


class Disconnected(Exception):
    """The client is disconnected, with a reason."""


class Outbox:
    """The messages to one client, in order."""

    def __init__(self) -> None:
        self._messages: deque[str] = deque()
        self._size = 0
        self._bell = anyio.Event()
        self._is_late = False
        self.overflowed = anyio.Event()

    def put(self, message: str) -> None:
        if self.overflowed.is_set():
            return  # it is being disconnected
        self._messages.append(message)
        self._size += len(message)
        if self._size > QUEUE_BYTES or len(self._messages) > QUEUE_MESSAGES:
            self.overflowed.set()
        self._ring()

    async def next(self) -> str:
        while not self._messages:
            await self._bell.wait()
        message = self._messages.popleft()
        self._size -= len(message)
        self._ring()
        return message

    async def drained(self) -> None:
        """Wait until few messages are unsent. A client that takes too long is not waited for again until they are: others
        watch the same terminal."""
        with anyio.move_on_after(0 if self._is_late else DRAIN_SECONDS):
            while self._size > DRAINED_BYTES:
                await self._bell.wait()
        self._is_late = self._size > DRAINED_BYTES

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()


class Connection:
    """One client."""

    def __init__(self, host: AhpHost, peer: Peer, known_clients: deque[str]) -> None:
        self.outbox = Outbox()
        self._host = host
        self._peer = peer
        self._known_clients = known_clients
        self._client = ""
        self._errors = 0
        self._subscriptions: set[str] = set()
        self._actions = ClientActions(host, peer, self.outbox)
        self._terminals = OwnTerminals(host, peer)
        self._methods: dict[str, _Method] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "reconnect": self._reconnect,
            "subscribe": self._subscribe,
            "listSessions": self._list_sessions,
            "createSession": self._create_session,
            "disposeSession": self._dispose_session,
            "resolveSessionConfig": self._resolve_config,
            "completions": self._complete_text,
            "resourceRead": self._read_resource,
            "resourceResolve": self._resolve_resource,
            "createTerminal": self._terminals.create,
            "disposeTerminal": self._terminals.dispose,
        }

    def close(self) -> None:
        """The client has gone."""
        self._host.channels.leave(self.outbox)

    async def handle(self, text: str | bytes) -> None:
        """Handle one message. Raises Disconnected after too many malformed ones."""
        message = _parse(text)
        if message is None:
            self._count_error()
            self.outbox.put(error_message(None, RpcError(PARSE_ERROR, "This is no JSON-RPC message.")))
        elif "id" in message and "method" in message:
            await self._answer(message)
        elif "method" in message:
            await self._hear(message)

    def answer_ping(self, text: str | bytes) -> bool:
        """Answer a ping; False for any other message."""
        if len(text) > PING_BYTES or b'"ping"' not in (text if isinstance(text, bytes) else text.encode()):
            return False
        message = _parse(text)
        if message is None or message.get("method") != "ping" or "id" not in message:
            return False
        self.outbox.put(result_message(message["id"], {}))
        return True

    async def _answer(self, message: Obj) -> None:
        try:
            result = await self._call(message)
        except RpcError as problem:
            self.outbox.put(error_message(message["id"], problem))
        except HTTPException as problem:
            self.outbox.put(error_message(message["id"], RpcError(INVALID_PARAMS, str(problem.detail))))
        else:
            self.outbox.put(result_message(message["id"], result))

    async def _call(self, message: Obj) -> object:
        method, params = message["method"], cast("object", message.get("params") or {})
        handler = self._methods.get(method) if isinstance(method, str) else None
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Handrail has no method {method!r:.100}.")
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "`params` must be an object.")
        if not self._client and method not in ("initialize", "reconnect", "ping"):
            raise RpcError(INVALID_REQUEST, "`initialize` must come first.")
        return await handler(cast("Obj", params))

    async def _hear(self, message: Obj) -> None:
        """Handle a notification. Those that we do not know are ignored."""
        params: Any = message.get("params")
        if not isinstance(params, dict) or not self._client:
            return
        fields = cast("Obj", params)
        try:
            if message["method"] == "dispatchAction":
                await self._dispatch(fields)
            elif message["method"] == "unsubscribe":
                self._unsubscribe(text_field(fields, "channel"))
        except RpcError:
            self._count_error()

    async def _dispatch(self, params: Obj) -> None:
        number = params.get("clientSeq")
        if not isinstance(number, int):
            raise RpcError(INVALID_PARAMS, "`clientSeq` must be a number.")
        origin = Origin(client=self._client, number=number)
        await self._actions.dispatch(text_field(params, "channel"), object_field(params, "action"), origin)

    def _count_error(self) -> None:
        self._errors += 1
        if self._errors > MOST_ERRORS:
            raise Disconnected("Too many messages were malformed.")

    # Connection

    async def _initialize(self, params: Obj) -> Obj:
        offered: object = params.get("protocolVersions")
        version = choose_version(cast("list[object]", offered) if isinstance(offered, list) else [])
        self._name_client(params)
        wanted = _texts(params.get("initialSubscriptions"))
        snapshots = await self._subscribe_to(wanted)
        return {
            "protocolVersion": version,
            "serverSeq": self._host.channels.seq,
            "serverInfo": {"name": "handrail", "version": __version__},
            "snapshots": snapshots,
        }

    def _name_client(self, params: Obj) -> None:
        self._client = text_field(params, "clientId")[:200]
        if self._client not in self._known_clients:
            self._known_clients.append(self._client)

    async def _ping(self, _params: Obj) -> Obj:
        return {}

    async def _reconnect(self, params: Obj) -> Obj:
        """Send what a client missed: the actions if all of them are kept, else snapshots."""
        client, seen = text_field(params, "clientId"), params.get("lastSeenServerSeq")
        if client not in self._known_clients or not isinstance(seen, int):
            raise RpcError(
                NOT_FOUND, "Handrail was restarted and does not know this client. Initialize again."
            )
        self._name_client(params)
        wanted = _texts(params.get("subscriptions"))
        actions = self._host.channels.replay(seen, wanted)
        if actions is None:
            return {"type": "snapshot", "snapshots": await self._subscribe_to(wanted)}
        for uri in wanted[: MOST_SUBSCRIPTIONS - len(self._subscriptions)]:
            self._join(uri)
        for notice in self._host.channels.notices(seen):
            self.outbox.put(notice)
        return {"type": "replay", "actions": actions, "missing": []}

    # Channels

    async def _subscribe(self, params: Obj) -> Obj:
        uri = text_field(params, "channel")
        await self._open(uri)
        return {"snapshot": self._host.channels.snapshot(uri)}

    async def _subscribe_to(self, uris: Sequence[str]) -> list[Obj]:
        """The snapshots of those channels that exist.

        All are taken when the last channel is open. The client ignores actions that come before this answer, so a snapshot from
        before such an action would leave it out for good.
        """
        opened: list[str] = []
        for uri in uris:
            with suppress(RpcError):
                await self._open(uri)
                opened.append(uri)
        return [self._host.channels.snapshot(uri) for uri in opened]

    async def _open(self, uri: str) -> None:
        """Subscribe to a channel. Raises RpcError."""
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            raise RpcError(INVALID_PARAMS, f"A client may have {MOST_SUBSCRIPTIONS} subscriptions.")
        await self._host.subscribe(uri)
        self._join(uri)

    def _join(self, uri: str) -> None:
        channel = self._host.channels.get(uri)
        if channel is None:
            raise RpcError(NOT_FOUND, f"There is no channel {uri[:200]}.")
        channel.subscribers.add(self.outbox)
        self._subscriptions.add(uri)

    def _unsubscribe(self, uri: str) -> None:
        self._subscriptions.discard(uri)
        if (channel := self._host.channels.get(uri)) is not None:
            channel.subscribers.discard(self.outbox)

    # Sessions

    async def _list_sessions(self, _params: Obj) -> Obj:
        return {"items": self._host.sessions.listed()}

    async def _create_session(self, params: Obj) -> None:
        """Create a session. No thread and no agent is started for it before its first prompt."""
        folders = _texts(params.get("workingDirectories"))
        path = path_of_uri(folders[0]) if folders else None
        workspace = await resolve_workspace(path)
        uri, provider = text_field(params, "channel"), text_field(params, "provider")
        self._host.sessions.create(uri, provider, workspace, now_ms())

    async def _dispose_session(self, params: Obj) -> None:
        uri = text_field(params, "channel")
        session = await self._host.sessions.find(uri)
        if session is None:
            return
        if session.thread is not None:
            raise RpcError(NOT_PERMITTED, "Delete threads on Handrail's page.")
        self._host.sessions.drop(session)
        self._host.close(session.chat)
        self._host.close(uri)

    async def _resolve_config(self, _params: Obj) -> Obj:
        """Sessions have no settings. In particular none that approves anything automatically."""
        return {"schema": {"type": "object", "properties": {}}, "values": {}}

    async def _complete_text(self, _params: Obj) -> Obj:
        return {"items": []}

    # Resources

    async def _read_resource(self, params: Obj) -> Obj:
        content = await self._find_content(text_field(params, "uri"))
        try:
            return {"data": content.decode(), "encoding": "utf-8", "contentType": "text/plain"}
        except UnicodeDecodeError:
            return {"data": base64.b64encode(content).decode(), "encoding": "base64"}

    async def _resolve_resource(self, params: Obj) -> Obj:
        uri = text_field(params, "uri")
        content = await self._find_content(uri)
        return {"uri": uri, "type": "file", "size": len(content)}

    async def _find_content(self, uri: str) -> bytes:
        if not is_issued_scheme(uri):
            raise RpcError(NOT_FOUND, "Handrail serves only the contents that it named itself.")
        try:
            return await self._host.contents.read(uri)
        except LookupError as problem:
            raise RpcError(NOT_FOUND, str(problem)) from None


class OwnTerminals:
    """Terminals that a client opens and closes for its person."""

    def __init__(self, host: AhpHost, peer: Peer) -> None:
        self._host = host
        self._peer = peer

    async def create(self, params: Obj) -> None:
        self._require_person()
        uri = text_field(params, "channel")
        if not uri.startswith("agenthost-terminal:") or self._host.terminals.is_own(uri):
            raise RpcError(INVALID_PARAMS, f"{uri[:200]} cannot be opened.")
        live = await self._open(params)
        self._host.terminals.adopt(uri, live, params.get("claim") or {"kind": "client"})
        self._host.publish_terminals()

    async def _open(self, params: Obj) -> str:
        settings = self._host.context.settings
        env = {**settings.environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        cwd = path_of_uri(str(params.get("cwd") or ""))
        try:
            live = await open_shell(
                self._host.context.terminals,
                shell=default_shell(settings.shell, env),
                cwd=cwd or env.get("HOME") or "/",
                env=env,
                size=(_cells(params.get("cols"), 80), _cells(params.get("rows"), 24)),
                of="tracked",
                name=str(params.get("name") or "")[:100],
                owner=Owner(person=True, name=str(EDITOR)),
                max_bytes=settings.max_bytes,
                max_lines=settings.max_lines,
                grace=settings.grace,
                scripts=settings.scripts,
            )
        except (KeeperError, OpenRefused) as problem:
            raise RpcError(INTERNAL_ERROR, str(problem)) from None
        return live.id

    async def dispose(self, params: Obj) -> None:
        """Close a terminal that a client opened. Others belong to agents and stay."""
        self._require_person()
        uri = text_field(params, "channel")
        if not self._host.terminals.is_own(uri):
            return
        live, context = self._host.terminals.find(uri), self._host.context
        self._host.terminals.release(uri)
        if live.swept is None:
            event = TerminalClosed(terminal=live.id, by=str(EDITOR))
            await context.journal.committed(context.journal.append(event))
            await live.stop(context.settings.grace)

    def _require_person(self) -> None:
        standing = self._peer.standing
        if not standing.decides:
            raise RpcError(NOT_PERMITTED, standing.why)


def _parse(text: str | bytes) -> Obj | None:
    try:
        message: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Obj", message) if isinstance(message, dict) else None


def _texts(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return list(dict.fromkeys(item for item in items if isinstance(item, str)))[:MOST_SUBSCRIPTIONS]


def _cells(value: object, default: int) -> int:
    return value if isinstance(value, int) and 0 < value <= 1000 else default
