"""The daemon's unix socket: doors, which then speak MCP, hooks, and the command line, which gets a bearer.

Each peer sends one hello line of JSON. Whether a peer counts as a person is decided by its process tree
(`terminal.person_check`). A door receives JSON-RPC lines and, between them, notes for the door itself.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import socket as sockets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail import __version__
from handrail.clients.open_work import ClientProcess
from handrail.framing import HELLO, HELLO_MAX
from handrail.server.access import CREDENTIAL_REVOKED, Access, Person
from handrail.server.client_hooks import Hooks
from handrail.server.connection_limit import MOST
from handrail.server.editor_pairings import EditorPairings, Standing
from handrail.server.editor_windows import ANSWER_BYTES, EditorWindow, EditorWindows
from handrail.server.hook_connection import serve_canary, serve_hook
from handrail.server.mcp._lines import Lines
from handrail.server.mcp.mcp_endpoints import DoorPeer, McpEndpoints
from handrail.store.actor import EDITOR_PLACE
from handrail.store.values import Json
from handrail.terminal.person_check import (
    OTHER_USER,
    DoorLaunchers,
    find_waiting_process,
    is_other_user,
)


class Hello(BaseModel):
    """The first line from a peer. Unknown fields are ignored: newer versions may send more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    handrail: int
    want: Literal["mcp", "person", "read", "hook", "canary"]
    version: str = ""
    cwd: Annotated[str, Field(max_length=4096)] = "/"
    workspace: Annotated[str | None, Field(max_length=4096)] = None
    door: Annotated[str, Field(max_length=64)] = ""
    credential: Annotated[str, Field(max_length=200)] = ""
    """Call credential of a hosted agent: its calls belong to a thread. For a hook, the mark of a hosted agent."""
    ppid: Annotated[int, Field(ge=0, le=1 << 22)] = 0
    orphaned: bool = False
    """The door's launcher has exited, so the door's parent is another process that adopted it."""
    place: Annotated[str, Field(max_length=40)] = ""
    """Where a person acts, if that is an editor, such as `VS Code`. An editor has to be paired to decide."""


def workspace_of(hello: Hello) -> str | None:
    """The workspace of a peer: the folder it names, else that of its cwd."""
    if hello.workspace is None:
        return find_workspace(hello.cwd)
    folder = Path(hello.workspace).expanduser()
    if not folder.is_absolute():
        folder = Path(hello.cwd) / folder
    return _checked_workspace(folder.resolve())


def find_workspace(cwd: str) -> str | None:
    """The workspace of a program: the git root of its cwd, else its cwd.

    None for a missing folder, and for the home directory and its parents.
    """
    folder = Path(cwd).expanduser().resolve()
    return _checked_workspace(
        next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    )


def _checked_workspace(folder: Path) -> str | None:
    return None if is_too_wide(folder) or not folder.is_dir() else str(folder)


def is_too_wide(folder: Path) -> bool:
    """Whether a folder is the home directory or a parent of it, and so no valid workspace."""
    return Path.home().resolve().is_relative_to(folder)


log = logging.getLogger(__name__)

HELLO_SECONDS = 5.0
"""Time limit for the hello line. Bounds how long a silent peer holds a file descriptor."""
RETRY_SECONDS = 0.2
"""Delay before the next accept when the process has no file descriptor left."""
DOORS_MAX = 128
"""Doors at a time: bounds memory, about 50 kB each."""
HOOKS_MAX = 256
"""Hooks at a time, each of which may wait for a person: bounds memory."""
REFUSAL_SECONDS = 0.008
"""Delay before a door is refused for want of room. Leaves most of the event loop to others when a client tries again."""
REFUSALS_DELAYED = 8
"""Refusals that are delayed at a time. More are sent immediately: they must not hold connections."""
FOR_PEOPLE = 2
"""Connections that doors cannot take: without them no person could approve anything."""
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
FULL = (
    "Handrail has as many connections as its file descriptors allow. End a client, or raise `ulimit -n` and run "
    "`handrail restart`."
)
CROWDED = f"Handrail serves {DOORS_MAX} MCP clients, which is the most. End some of them."


MANY_HOOKS = f"Handrail judges {HOOKS_MAX} hooks at a time, which is the most. Answer some of the questions."


class LocalSocketServer:
    """Accepts connections on the unix socket."""

    def __init__(
        self,
        mcp: McpEndpoints,
        hooks: Hooks,
        access: Access,
        lineage: DoorLaunchers,
        editors: EditorPairings,
        windows: EditorWindows,
        url: str,
    ) -> None:
        self._mcp = mcp
        self._hooks = hooks
        self._access = access
        self._lineage = lineage
        self._editors = editors
        self._windows = windows
        self._doors = 0
        self._hooks_open = 0
        self._refusing = 0
        self._open: set[SocketStream] = set()
        self._greeting: dict[SocketStream, anyio.CancelScope] = {}
        """Peers that have not sent their hello yet, oldest first."""
        self._most = MOST
        self._about: Json = {"handrail": HELLO, "version": __version__, "pid": os.getpid(), "url": url}

    async def serve(self, listener: SocketListener, most: int) -> None:
        """Accept connections until cancelled; at most so many at a time."""
        self._most = most
        async with anyio.create_task_group() as group:
            while True:
                try:
                    stream = await listener.accept()
                except anyio.BrokenResourceError as problem:
                    if getattr(problem.__cause__, "errno", None) not in _NO_DESCRIPTORS:
                        raise
                    await anyio.sleep(RETRY_SECONDS)
                else:
                    group.start_soon(self.handle, stream)

    async def handle(self, stream: SocketStream) -> None:
        """Serve one connection until it closes."""
        self._open.add(stream)
        try:
            async with stream:
                await self._serve(stream)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, TimeoutError):
            return
        except Exception:
            log.exception("a connection on the daemon's socket failed")
        finally:
            self._open.discard(stream)

    async def _serve(self, stream: SocketStream) -> None:
        lines = Lines(stream)
        raw = stream.extra(SocketAttribute.raw_socket)
        hello = _parse_hello(await self._read_hello(stream, lines))
        if is_other_user(raw):
            await self._refuse(stream, OTHER_USER)
        elif hello is None:
            await self._refuse(
                stream, "The greeting was not understood. Use the `handrail` command of this version."
            )
        elif self._is_full(hello):
            await self._refuse(stream, FULL)
        elif hello.want == "mcp" and self._doors >= DOORS_MAX:
            await self._refuse_later(stream, CROWDED)
        elif hello.want == "mcp":
            client = None
            if not hello.orphaned:
                self._lineage.launched_door(raw)
                client = self._lineage.launched_server(raw)
            await self._serve_door(stream, lines, hello, client and ClientProcess(*client))
        elif hello.want in ("hook", "canary"):
            await self._serve_hook(stream, lines, hello, raw)
        elif hello.place and hello.want == "person":
            await self._serve_editor(stream, lines, hello, raw)
        else:
            await self._serve_person(stream, lines, hello, raw)

    async def _read_hello(self, stream: SocketStream, lines: Lines) -> bytes | None:
        """The hello line. A peer that does not send it in time, or while others need its place, is dropped."""
        if len(self._open) > self._most and self._greeting:
            oldest = next(iter(self._greeting))
            self._open.discard(oldest)
            self._greeting.pop(oldest).cancel()
        with anyio.move_on_after(HELLO_SECONDS) as scope:
            self._greeting[stream] = scope
            try:
                return await lines.read(HELLO_MAX)
            finally:
                self._greeting.pop(stream, None)
        raise TimeoutError

    def _is_full(self, hello: Hello) -> bool:
        """Whether there is no room for this peer. Doors and hooks leave some for people."""
        is_door = hello.want in ("mcp", "hook")
        doors = is_door and self._doors + self._hooks_open >= self._most - FOR_PEOPLE
        return doors or len(self._open) > self._most

    async def _serve_door(
        self, stream: SocketStream, lines: Lines, hello: Hello, client: ClientProcess | None
    ) -> None:
        if hello.credential and self._access.client(hello.credential) is None:
            await self._refuse(stream, CREDENTIAL_REVOKED)
            return
        peer = DoorPeer(
            key=_key(hello.door), workspace=workspace_of(hello), credential=hello.credential, process=client
        )
        self._doors += 1
        try:
            await self._welcome(stream, {})
            await self._mcp.serve_door(lines, peer)
        finally:
            self._doors -= 1

    async def _serve_hook(
        self, stream: SocketStream, lines: Lines, hello: Hello, raw: sockets.socket
    ) -> None:
        if hello.want == "canary":  # from a person's `handrail doctor`, which does not count as an agent
            await self._welcome(stream, {})
            await serve_canary(self._hooks, lines)
            return
        if self._hooks_open >= HOOKS_MAX:
            await self._refuse_later(stream, MANY_HOOKS)
            return
        if not hello.orphaned:
            self._lineage.launched_door(raw)
        self._hooks_open += 1
        try:
            process = find_waiting_process(raw)
            await self._welcome(stream, {})
            await serve_hook(self._hooks, lines, hello.credential, process and ClientProcess(*process))
        finally:
            self._hooks_open -= 1

    async def _serve_person(
        self, stream: SocketStream, lines: Lines, hello: Hello, raw: sockets.socket
    ) -> None:
        """Grant a bearer for the lifetime of the connection: with `approves` only to a person, else for watching."""
        decides = hello.want == "person"
        refusal = self._lineage.refusal(raw, hello.ppid) if decides else None
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

    async def _serve_editor(
        self, stream: SocketStream, lines: Lines, hello: Hello, raw: sockets.socket
    ) -> None:
        """Send a bearer, and a new one each time when what the editor may do has changed, until it hangs up.

        Between these lines it gets questions about code, and sends its folders and the answers.
        """
        with (
            self._editors.connect_extension(raw, hello.workspace or "", hello.ppid) as editor,
            self._windows.connect(partial(_put_question, lines)) as window,
        ):
            async with anyio.create_task_group() as group:
                group.start_soon(_hear_window, lines, window, group.cancel_scope)
                group.start_soon(_flush, lines, group.cancel_scope)
                standing = editor.standing
                while True:
                    window.paired = standing.decides
                    bearer = self._access.grant(Person(place=EDITOR_PLACE, approves=standing.decides))
                    try:
                        terms: Json = {"bearer": bearer, "asks": True, **_editor_terms(standing)}
                        await lines.write(_to_line({**self._about, "ok": True, **terms}))
                        standing = await editor.changed(standing)
                    finally:
                        self._access.withdraw(bearer)

    async def _welcome(self, stream: SocketStream, more: Json) -> None:
        await _send_json(stream, {**self._about, "ok": True, **more})

    async def _refuse_later(self, stream: SocketStream, why: str) -> None:
        if self._refusing < REFUSALS_DELAYED:
            self._refusing += 1
            try:
                await anyio.sleep(REFUSAL_SECONDS)
            finally:
                self._refusing -= 1
        await self._refuse(stream, why)

    async def _refuse(self, stream: SocketStream, why: str) -> None:
        await _send_json(stream, {**self._about, "ok": False, "why": why})


def _editor_terms(standing: Standing) -> Json:
    pairing = standing.pairing
    return {
        "approves": standing.decides,
        "why": standing.why,
        "number": pairing.number if pairing is not None and not standing.decides else None,
        "editor": pairing.id if pairing is not None else None,
    }


async def _hear_window(lines: Lines, window: EditorWindow, scope: anyio.CancelScope) -> None:
    """Take what an editor sends after its hello. Cancel when it hangs up."""
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            window.hear(await lines.read(ANSWER_BYTES))
    scope.cancel()


async def _flush(lines: Lines, scope: anyio.CancelScope) -> None:
    with contextlib.suppress(anyio.BrokenResourceError):
        await lines.flush()
    scope.cancel()


def _put_question(lines: Lines, line: bytes) -> None:
    if lines.is_full:
        raise anyio.WouldBlock
    lines.put(line)


def _key(door: str) -> str:
    """The public key of a door: a hash, because the journal shows it and the door's id itself is a secret."""
    secret = door.encode() or os.urandom(16)
    return f"door {hashlib.sha256(secret).hexdigest()[:16]}"


def _parse_hello(line: bytes | None) -> Hello | None:
    try:
        return Hello.model_validate_json(line or b"")
    except ValidationError:
        return None


async def _send_json(stream: SocketStream, message: Mapping[str, object]) -> None:
    await stream.send(_to_line(message))


def _to_line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"
