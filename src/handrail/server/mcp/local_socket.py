"""The daemon's own socket: doors, and the command line.

Owns the greeting and who is taken for a person. It does not know tools or routes; what follows the greeting of a
door is talk.py's.

The greeting on the daemon's socket, as the daemon hears it.
"""

import hashlib
import json
import logging
import os
import socket as sockets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import anyio
from anyio.abc import SocketAttribute, SocketStream
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail import __version__
from handrail.framing import HELLO, HELLO_MAX
from handrail.gate.call import Call
from handrail.server.access import Access, Client, Person
from handrail.server.mcp.client_connection import Talk
from handrail.server.mcp.lines import Lines
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
