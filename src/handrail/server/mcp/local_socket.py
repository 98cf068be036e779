"""The daemon's own socket: doors, and the command line.

Owns the greeting and who is taken for a person. It does not know tools or routes; what follows the greeting of a
door is talk.py's.

The greeting on the daemon's socket, as the daemon hears it.

MCP with one door: messages out of lines and into lines, and notes to the door itself.
"""

import hashlib
import json
import logging
import os
import socket as sockets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

import anyio
import mcp_types as types
from anyio.abc import SocketAttribute, SocketStream
from mcp.server.lowlevel.server import Server
from mcp.shared.dispatcher import as_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail import __version__
from handrail.framing import HELLO, HELLO_MAX
from handrail.gate.call import Call
from handrail.server.access import Access, Client, Person
from handrail.server.mcp._lines import Lines
from handrail.server.mcp.mcp_server import Callers, Context, Line, Mcp, client_name
from handrail.store.values import Caller, Json
from handrail.terminal.person_check import STRANGER, Lineage, is_stranger


class Hello(BaseModel):
    """The first line of whoever connects. Later versions may say more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    handrail: int
    want: Literal["mcp", "person", "read"]
    version: str = ""
    cwd: Annotated[str, Field(max_length=4096)] = "/"
    workspace: Annotated[str | None, Field(max_length=4096)] = None
    door: Annotated[str, Field(max_length=64)] = ""
    credential: Annotated[str, Field(max_length=200)] = ""
    """Lent to an agent that we started ourselves: its calls belong to a thread."""


def workspace_of(hello: Hello) -> str | None:
    """The named folder, else the folder it stands in widened to its git top level; home, and what it lies in, count as none."""
    asked = hello.workspace or hello.cwd
    folder = Path(asked).expanduser()
    if not folder.is_absolute():
        folder = Path(hello.cwd) / folder
    folder = folder.resolve()
    if hello.workspace is None:
        folder = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    return None if is_too_wide(folder) or not folder.is_dir() else str(folder)


def is_too_wide(folder: Path) -> bool:
    """Whether it is the person's home, or holds it: no workspace for anybody."""
    return Path.home().resolve().is_relative_to(folder)


log = logging.getLogger(__name__)

HELLO_SECONDS = 5.0
"""A peer that connects and says nothing holds a descriptor no longer than this."""
ANSWERS_SECONDS = 1.0
"""For the answers of a daemon that leaves: one commit and one write, unless a peer does not read."""
VOID = (
    "The credential in HANDRAIL_CREDENTIAL is no longer good: its thread, or the daemon that lent it, is gone. "
    "Prompt the agent again from its thread."
)


class Local:
    """Whoever connects on this machine."""

    def __init__(self, mcp: Mcp, access: Access, callers: Callers, lineage: Lineage, url: str) -> None:
        self._mcp = mcp
        self._callers = callers
        self._access = access
        self._lineage = lineage
        self._talks: set[Talk] = set()
        self._about: Json = {"handrail": HELLO, "version": __version__, "pid": os.getpid(), "url": url}

    async def handle(self, stream: SocketStream) -> None:
        """One connection, from greeting to end."""
        try:
            async with stream:
                await self._greet(stream)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, TimeoutError):
            return
        except Exception:
            log.exception("a connection on the daemon's socket failed")

    async def leave(self) -> None:
        """Let the last answers go out, and say that we leave on purpose: doors need not look for us at once."""
        with anyio.move_on_after(ANSWERS_SECONDS):
            for talk in list(self._talks):
                await talk.answered()
        for talk in self._talks:
            talk.note({"bye": "stopping"})

    async def _greet(self, stream: SocketStream) -> None:
        lines = Lines(stream)
        raw = stream.extra(SocketAttribute.raw_socket)
        with anyio.fail_after(HELLO_SECONDS):
            said = await lines.read(HELLO_MAX)
        hello = _heard(said)
        if is_stranger(raw):
            await self._refuse(stream, STRANGER)
        elif hello is None:
            await self._refuse(
                stream, "The greeting was not understood. Use the `handrail` command of this version."
            )
        elif hello.want == "mcp":
            self._lineage.launched_door(raw)
            await self._door(stream, lines, hello)
        else:
            await self._person(stream, lines, hello, raw)

    async def _door(self, stream: SocketStream, lines: Lines, hello: Hello) -> None:
        client = self._access.client(hello.credential) if hello.credential else None
        if hello.credential and client is None:
            await self._refuse(stream, VOID)
            return
        await self._welcome(stream, {})
        await self._mcp_line(lines, hello, client)

    async def _mcp_line(self, lines: Lines, hello: Hello, client: Client | None) -> None:
        workspace = workspace_of(hello)
        talk = Talk(lines)
        key = _key(hello.door)

        def caller(context: Context) -> Caller:
            told = client_name(context)
            if client is not None:
                if self._access.client(hello.credential) is None:  # taken back since: its thread is gone
                    raise MCPError(INVALID_REQUEST, VOID)
                return self._callers.holding(client, "stdio", told)
            return Caller(door="stdio", client=told, key=key, workspace=workspace)

        def opened(context: Context, call: Call) -> None:
            talk.opened(context.request_id, call.id, acts=self._mcp.acts(call))

        self._talks.add(talk)
        try:
            await talk.serve(self._mcp.server(Line(caller=caller, opened=opened)))
        finally:
            self._talks.discard(talk)

    async def _person(self, stream: SocketStream, lines: Lines, hello: Hello, raw: sockets.socket) -> None:
        """A bearer that lasts as long as the connection. Watching is for everybody, deciding for a person."""
        decides = hello.want == "person"
        refusal = self._lineage.refusal(raw) if decides else None
        if refusal is not None:
            await self._refuse(stream, refusal)
            return
        approves = decides and self._access.sealed is None
        bearer = self._access.grant(Person(place="command line", approves=approves, ends=decides))
        try:
            await self._welcome(stream, {"bearer": bearer})
            await lines.read(HELLO_MAX)
        finally:
            self._access.withdraw(bearer)

    async def _welcome(self, stream: SocketStream, more: Json) -> None:
        await _say(stream, {**self._about, "ok": True, **more})

    async def _refuse(self, stream: SocketStream, why: str) -> None:
        await _say(stream, {**self._about, "ok": False, "why": why})


def _key(door: str) -> str:
    """What a door is known by. Everybody who watches sees it, so that it must not be enough to pass for that door."""
    secret = door.encode() or os.urandom(16)
    return f"door {hashlib.sha256(secret).hexdigest()[:16]}"


def _heard(line: bytes | None) -> Hello | None:
    try:
        return Hello.model_validate_json(line or b"")
    except ValidationError:
        return None


async def _say(stream: SocketStream, message: Mapping[str, object]) -> None:
    await stream.send(json.dumps(message).encode() + b"\n")


LISTENS_SECONDS = 5.0
"""For the answers of one that closed its own side; as long as the door waits for them."""
NOTE_SECONDS = 0.01
"""After which a door is told of a call that only reads: most are answered by then, and a note costs as much."""
_BAD = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is not a JSON-RPC message."}}\n'
)
_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This message is longer than 32 MiB."}}\n'
)


class Talk:
    """One connection: the requests on it that are not answered yet, and the calls they became."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._unanswered: set[types.RequestId] = set()
        self._none = anyio.Event()
        self._calls: dict[types.RequestId, str] = {}
        self._opened = anyio.Event()

    async def serve(self, server: Server[Any]) -> None:
        """Serve until the peer is gone; calls it still waits for are cancelled with it."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._flush, group.cancel_scope)
            group.start_soon(self._tell_calls)
            options = server.create_initialization_options()
            await server.run(Heard(self._hear), Said(self._say), options)
            group.cancel_scope.cancel()

    def note(self, note: Json) -> None:
        """A word to the door itself, which it does not pass on; one that is gone or does not read misses it."""
        if self._lines.crowded:
            log.warning("a door reads too slowly to be told %s", next(iter(note)))
            return
        with suppress(anyio.BrokenResourceError):
            self._lines.put(json.dumps({"handrail": note}, separators=(",", ":")).encode() + b"\n")

    def opened(self, request: types.RequestId | None, call: str, *, acts: bool) -> None:
        """A request became a call. The door is told, to name it should we go away: before it acts, or if it lasts."""
        if request is None:
            return
        if acts:
            self._tell_call(request, call)
        else:
            self._calls[request] = call
            self._opened.set()

    async def _hear(self) -> types.JSONRPCMessage | None:
        """The next message; None when the peer has no more to say and waits for nothing."""
        try:
            while True:
                line = await self._lines.read()
                message = _parsed(line) if line is not None else None
                if message is not None:
                    self._expect(message)
                    return message
                if line is None or line.strip():
                    await self._lines.write(_LONG if line is None else _BAD)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            await self._let_answers_leave()
            return None

    async def _say(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCError) and message.error.code == types.CONNECTION_CLOSED:
            return  # the SDK's last words when it is cut off; the door has better ones, and the call's name
        await self._lines.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._close(message.id)

    def _expect(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._unanswered.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close(as_request_id((message.params or {}).get("requestId")))  # nobody will answer it

    def _close(self, request: types.RequestId | None) -> None:
        if request is None:
            return
        self._unanswered.discard(request)
        self._calls.pop(request, None)
        if not self._unanswered:
            self._none.set()
            self._none = anyio.Event()

    async def answered(self) -> None:
        """Return when every request is answered and the answers are sent."""
        while self._unanswered:
            await self._none.wait()
        await self._lines.sent()

    async def _let_answers_leave(self) -> None:
        """It said all it had to say, as a pipe does, and still listens."""
        if not self._lines.hung_up:
            with anyio.move_on_after(LISTENS_SECONDS):
                await self.answered()

    async def _flush(self, scope: anyio.CancelScope) -> None:
        try:
            await self._lines.flush()
        except anyio.BrokenResourceError:
            scope.cancel()

    async def _tell_calls(self) -> None:
        while True:
            await self._opened.wait()
            self._opened = anyio.Event()
            await anyio.sleep(NOTE_SECONDS)
            for request, call in self._calls.items():
                self._tell_call(request, call)
            self._calls.clear()

    def _tell_call(self, request: types.RequestId, call: str) -> None:
        self.note({"opened": {"request": request, "call": call}})


def _parsed(line: bytes) -> types.JSONRPCMessage | None:
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


class _Stream:
    """What the SDK asks of a stream beside its messages. Whoever opened the socket closes it."""

    async def aclose(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        return


class Heard(_Stream):
    """What the peer says: `hear` gives the next message, or None when there will be no more."""

    def __init__(self, hear: Callable[[], Awaitable[types.JSONRPCMessage | None]]) -> None:
        self._hear = hear

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        message = await self._hear()
        if message is None:
            raise anyio.EndOfStream
        return SessionMessage(message)


class Said(_Stream):
    """What the peer is told."""

    def __init__(self, say: Callable[[types.JSONRPCMessage], Awaitable[None]]) -> None:
        self._say = say

    async def send(self, item: SessionMessage, /) -> None:
        await self._say(item.message)
