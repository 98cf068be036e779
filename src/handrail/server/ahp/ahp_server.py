"""The listeners of the agent host: a separate unix socket, and a loopback port if one is set.

VS Code's server connects with a WebSocket and no credential. On the socket, the process at the other end is known: agents
are refused, and only an editor that a person has paired decides. On the port, a token lets a client watch and prompt, if
its process is no agent's and nothing that Handrail started: these can read the token in config.toml.
"""

import hmac
import logging
import os
import socket
from collections import deque
from contextlib import AsyncExitStack, closing
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
from websockets.asyncio.server import ServerConnection, serve, unix_serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from handrail.server.ahp._connection import Connection, Disconnected
from handrail.server.ahp.ahp_host import AhpHost
from handrail.server.ahp.peer import Pairings, Peer, Watcher
from handrail.store.bell import Bell
from handrail.terminal.loopback_peer import find_refusal
from handrail.terminal.person_check import OTHER_USER, DoorLaunchers, is_other_user

log = logging.getLogger(__name__)

MESSAGE_BYTES = 2 * 1024 * 1024
"""Longest message from a client. Bounds memory; a prompt with attachments is far smaller."""
MOST_CONNECTIONS = 32
"""Connections at a time. An editor window has one."""
AHEAD, AHEAD_BYTES = 64, 1024 * 1024
"""Messages of one client that wait here, and their size. More are left in its socket."""
MOST_KNOWN = 1000
"""Names of clients that may reconnect: bounds memory."""
CLOSE_SECONDS = 2.0
TOO_SLOW, BAD_CLIENT = 1013, 1008
LOOPBACK = "127.0.0.1"
_LIMITS: dict[str, Any] = {
    "max_size": MESSAGE_BYTES,
    "max_queue": 2,
    "compression": None,
    "close_timeout": CLOSE_SECONDS,
}


def listen(path: Path) -> socket.socket:
    """Listen on a unix socket that is private to this user. Raises OSError."""
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(
            f"{folder} is open to other users; the socket of [ahp] must lie in a private folder."
        )
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen()  # a client that connects before the host has started waits
    return listener


class AhpServer:
    """Accepts clients of the agent host."""

    def __init__(self, host: AhpHost, pairings: Pairings, launchers: DoorLaunchers, token: str) -> None:
        self._host = host
        self._pairings = pairings
        self._launchers = launchers
        self._token = token
        self._open = 0
        self._known_clients: deque[str] = deque(maxlen=MOST_KNOWN)

    async def serve(self, listener: socket.socket, port: int) -> None:
        """Serve on the socket, and on the port unless it is 0, until cancelled. Clients wait until the host has started."""
        problem: OSError | None = None
        async with anyio.create_task_group() as group:
            await group.start(self._host.run)
            try:
                await self._accept(listener, port)
            except OSError as error:
                problem = error
                group.cancel_scope.cancel()
        if problem is not None:
            raise problem

    async def _accept(self, listener: socket.socket, port: int) -> None:
        unix = unix_serve(self._serve_socket, sock=listener, process_request=self._check_peer, **_LIMITS)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(unix)
            if port:
                tcp = serve(self._serve_port, LOOPBACK, port, process_request=self._check_token, **_LIMITS)
                await stack.enter_async_context(tcp)
            await anyio.sleep_forever()

    def _check_peer(self, connection: ServerConnection, request: Request) -> Response | None:
        with closing(_peer_socket(connection)) as peer:
            refusal = OTHER_USER if is_other_user(peer) else self._launchers.refusal(peer)
        return self._refuse(connection, request, refusal)

    async def _check_token(self, connection: ServerConnection, request: Request) -> Response | None:
        given = parse_qs(urlsplit(request.path).query).get("tkn", [""])[0]
        is_right = bool(self._token) and hmac.compare_digest(given.encode(), self._token.encode())
        refusal = (
            None if is_right else "The token is missing or wrong. It is `token` of [ahp] in config.toml."
        )
        if refusal is None:
            client, server = connection.remote_address[:2], connection.local_address[:2]
            refusal = await anyio.to_thread.run_sync(find_refusal, self._launchers, client, server)
        return self._refuse(connection, request, refusal)

    def _refuse(self, connection: ServerConnection, request: Request, why: str | None) -> Response | None:
        if why is None and "Origin" in request.headers:
            why = "Pages of a browser may not connect."
        if why is None and self._open >= MOST_CONNECTIONS:
            why = f"Handrail has {MOST_CONNECTIONS} connections here, which is the most."
        return None if why is None else connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")

    async def _serve_socket(self, connection: ServerConnection) -> None:
        with (
            closing(_peer_socket(connection)) as peer,
            self._pairings.connect_agent_host(peer, "") as editor,
        ):
            if not editor.standing.decides:  # reading it once also asks the person to pair the editor
                log.info("an editor connected that may not decide: %s", editor.standing.why)
            await self._serve(connection, editor)

    async def _serve_port(self, connection: ServerConnection) -> None:
        await self._serve(connection, Watcher())

    async def _serve(self, socket: ServerConnection, peer: Peer) -> None:
        client = Connection(self._host, peer, self._known_clients)
        self._open += 1
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_send, socket, client)
                group.start_soon(_close_slow, socket, client)
                await _receive(socket, client)
                group.cancel_scope.cancel()
        except* ConnectionClosed:
            pass
        except* Disconnected as problem:
            await socket.close(BAD_CLIENT, str(_first(problem)))
        except* Exception:
            log.exception("a connection of the agent host failed")
        finally:
            self._open -= 1
            client.close()


def _first(group: BaseExceptionGroup[Disconnected]) -> BaseException:
    """The first exception within nested groups."""
    problem: BaseException = group
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


async def _send(socket: ServerConnection, client: Connection) -> None:
    while True:
        await socket.send(await client.outbox.next())


async def _close_slow(socket: ServerConnection, client: Connection) -> None:
    """Disconnect a client that does not read. The close frame waits until it reads, so that the time for it is bounded."""
    await client.outbox.overflowed.wait()
    client.close()
    with anyio.move_on_after(CLOSE_SECONDS):
        await socket.close(TOO_SLOW, "It does not read fast enough; reconnect to catch up.")
    socket.transport.abort()


async def _receive(socket: ServerConnection, client: Connection) -> None:
    """Handle messages in order. Pings are answered immediately: a client counts a late answer as a lost connection."""
    inbox = Inbox()
    async with anyio.create_task_group() as group:
        group.start_soon(_handle_all, inbox, client)
        async for message in socket:
            if not client.answer_ping(message):
                await inbox.put(message)
        group.cancel_scope.cancel()


async def _handle_all(inbox: "Inbox", client: Connection) -> None:
    while True:
        await client.handle(await inbox.next())


class Inbox:
    """The messages of one client that wait to be handled: some, or a single long one."""

    def __init__(self) -> None:
        self._messages: deque[str | bytes] = deque()
        self._bell = Bell()

    async def put(self, message: str | bytes) -> None:
        """Add a message; waits for room."""
        while self._messages and not self._has_room(message):
            await self._bell.wait()
        self._messages.append(message)
        self._bell.ring()

    async def next(self) -> str | bytes:
        while not self._messages:
            await self._bell.wait()
        message = self._messages.popleft()
        self._bell.ring()
        return message

    def _has_room(self, message: str | bytes) -> bool:
        waiting = sum(map(len, self._messages))
        return len(self._messages) < AHEAD and waiting + len(message) <= AHEAD_BYTES


def _peer_socket(connection: ServerConnection) -> socket.socket:
    """A socket of our own for the connection: that of an event loop does not have all methods."""
    return socket.socket(fileno=os.dup(connection.transport.get_extra_info("socket").fileno()))
