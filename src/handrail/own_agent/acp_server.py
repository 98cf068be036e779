"""The ACP server: one handler for each request of the host.

Owns the open sessions, our capabilities, and the mapping from exceptions to JSON-RPC errors. Importing it
loads neither a model library nor MCP, so that `initialize` is answered fast; a background task loads them
afterwards, or at once if no host is waiting for an answer yet. How a prompt is processed is in agent_session.py.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import stat
import sys
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import BaseModel, ValidationError

from handrail import __version__
from handrail.config import BadConfig, OwnAgentSection, load
from handrail.own_agent.acp_requests import (
    HostServer,
    InitializeRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    ResumeSessionRequest,
    SessionRequest,
    SetConfigOptionRequest,
)
from handrail.own_agent.acp_stdio import INVALID_PARAMS, METHOD_NOT_FOUND, HostConnection, RequestError
from handrail.own_agent.agent_session import PromptHandler, Session
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models
from handrail.own_agent.models.http_stream import load_certificates
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.session_files import NoSuchSession, SessionFile, SessionFiles, build_message_schema
from handrail.own_agent.slash_commands import NoSuchOption
from handrail.own_agent.slow_import import import_slowly
from handrail.own_agent.tools.agent_tool import Json
from handrail.own_agent.updates import SessionUpdates
from handrail.paths import Places

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


PROTOCOL_VERSION = 1
SLOW_MODULES = (
    "handrail.own_agent.conversation",
    "handrail.own_agent.models.model_client",
    "handrail.own_agent.models.providers",
)
"""Modules that take about half a second to import."""
NOTIFICATIONS = frozenset({"session/cancel"})
CAPABILITIES: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}},
    "_meta": {"handrail": {"activities": True}},
}


class AgentServer:
    """The agent program, connected to one host."""

    def __init__(
        self, sessions: SessionFiles, models: Models, keys: Keys, settings: OwnAgentSection, group: TaskGroup
    ) -> None:
        self._kept, self._models, self._settings, self._group = sessions, models, settings, group
        self._keys = keys
        self._sessions: dict[str, Session] = {}
        self._ours = False
        self._loading, self._loaded = False, anyio.Event()
        self._routes: Mapping[str, tuple[type[BaseModel], Callable[[Any], Awaitable[Any]]]] = {
            "initialize": (InitializeRequest, self._initialize),
            "session/new": (NewSessionRequest, self._new_session),
            "session/load": (LoadSessionRequest, self._load_session),
            "session/resume": (ResumeSessionRequest, self._resume_session),
            "session/fork": (ResumeSessionRequest, self._fork_session),
            "session/list": (ListSessionsRequest, self._list_sessions),
            "session/close": (SessionRequest, self._close_session),
            "session/delete": (SessionRequest, self._delete_session),
            "session/prompt": (PromptRequest, self._prompt),
            "session/cancel": (SessionRequest, self._cancel),
            "session/set_config_option": (SetConfigOptionRequest, self._set_config_option),
            "_session/steering": (PromptRequest, self._steer),
        }
        self.wire = HostConnection(self._handle, NOTIFICATIONS, group)

    def warm_up(self) -> None:
        """Start to import the slow modules in the background, before the first prompt needs them."""
        if not self._loading:
            self._loading = True
            self._group.start_soon(self._load)

    async def leave(self) -> None:
        """Close all sessions and the HTTP client after the host has disconnected."""
        async with anyio.create_task_group() as group:
            for session in self._sessions.values():
                group.start_soon(lambda session=session: session.close(heard=False))
        await self._models.aclose()

    # Requests of the host

    async def _initialize(self, request: InitializeRequest) -> Json:
        self._keys.give(_object(_object(_object(request.meta).get("handrail")).get("keys")))
        meta = _object(_object(request.client_capabilities).get("_meta"))
        self._ours = bool(_object(meta.get("handrail")).get("activities"))
        self.wire.afterwards(self.warm_up)
        return {
            "protocolVersion": min(request.protocol_version, PROTOCOL_VERSION),
            "agentCapabilities": CAPABILITIES,
            "agentInfo": {"name": "handrail", "title": "Handrail", "version": __version__},
            "authMethods": [],
            "_meta": {"steering": {"supported": True}},
        }

    async def _new_session(self, request: NewSessionRequest) -> Json:
        kept = await anyio.to_thread.run_sync(self._kept.new, _require_absolute(request.cwd))
        session = await self._open(kept, request.cwd, request.mcp_servers)
        return {"sessionId": session.id, "configOptions": session.work.listed()}

    async def _load_session(self, request: LoadSessionRequest) -> Json:
        session = await self._reopen(request.cwd, request.session_id, request.mcp_servers)
        await session.work.show()
        return {"configOptions": session.work.listed()}

    async def _resume_session(self, request: ResumeSessionRequest) -> Json:
        session = await self._reopen(request.cwd, request.session_id, request.mcp_servers)
        return {"configOptions": session.work.listed()}

    async def _fork_session(self, request: ResumeSessionRequest) -> Json:
        cwd = _require_absolute(request.cwd)
        kept = await anyio.to_thread.run_sync(self._kept.copy, request.session_id, cwd)
        session = await self._open(kept, cwd, request.mcp_servers)
        return {"sessionId": session.id, "configOptions": session.work.listed()}

    async def _list_sessions(self, request: ListSessionsRequest) -> Json:
        start = int(request.cursor) if request.cursor is not None and request.cursor.isdecimal() else 0
        page, next_start = await anyio.to_thread.run_sync(self._kept.listed, request.cwd, start)
        listed = [
            {
                "sessionId": each.id,
                "cwd": each.cwd,
                "title": each.title,
                "updatedAt": each.updated.astimezone(UTC).isoformat(),
            }
            for each in page
        ]
        return {"sessions": listed, **({} if next_start is None else {"nextCursor": str(next_start)})}

    async def _close_session(self, request: SessionRequest) -> Json:
        await self._close(request.session_id)
        return {}

    async def _delete_session(self, request: SessionRequest) -> Json:
        await self._close(request.session_id)
        await anyio.to_thread.run_sync(self._kept.delete, request.session_id)
        return {}

    async def _prompt(self, request: PromptRequest) -> Json:
        return {"stopReason": await self._session(request.session_id).prompt(request.prompt)}

    async def _cancel(self, request: SessionRequest) -> None:
        if request.session_id in self._sessions:
            self._sessions[request.session_id].cancel()

    async def _set_config_option(self, request: SetConfigOptionRequest) -> Json:
        session = self._session(request.session_id)
        session.work.set(request.config_id, request.value)
        return {"configOptions": session.work.listed()}

    async def _steer(self, request: PromptRequest) -> Json:
        """Add a message to the running prompt. If none runs, the host must send it as a prompt."""
        if request.prompt and self._session(request.session_id).steer(request.prompt):
            return {"outcome": "injected"}
        return {"outcome": "promptRequired", "reason": "noRunningTurn"}

    async def _cancel_activity(self, params: Json) -> Json:
        session = self._session(str(params.get("sessionId")))
        return {"cancelled": session.cancel_activity(str(params.get("activity")))}

    # Implementation

    async def _handle(self, method: str, params: Any, _is_notification: bool) -> Any:
        """Serve a message. This is the only place that turns our exceptions into JSON-RPC errors."""
        try:
            return await self._route(method, params)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            raise RequestError(INVALID_PARAMS, "Invalid params", {"errors": problems}) from None
        except ModelError as error:
            raise RequestError(-32000 if error.login else -32603, error.sentence) from None
        except NoSuchSession:
            raise RequestError(-32002, "There is no such session here.") from None
        except NoSuchOption as error:
            raise RequestError(-32602, str(error)) from None
        except OSError as error:
            raise RequestError(-32603, f"The conversation could not be kept: {error}.") from None

    async def _route(self, method: str, params: Any) -> Any:
        if method == "_handrail/cancel_activity":
            return await self._cancel_activity(_object(params))
        if method not in self._routes:
            raise RequestError(METHOD_NOT_FOUND, "Method not found", {"method": method})
        model, serve = self._routes[method]
        return await serve(model.model_validate(params))

    async def _reopen(self, cwd: str, id: str, servers: list[HostServer] | None) -> Session:
        await self._close(id)
        kept = await anyio.to_thread.run_sync(self._kept.open, id)
        return await self._open(kept, _require_absolute(cwd), servers)

    async def _open(self, kept: SessionFile, cwd: str, servers: list[HostServer] | None) -> Session:
        updates = SessionUpdates(self.wire, kept.id, Path(cwd), ours=self._ours, on_call=kept.shown)
        work = PromptHandler(kept, Path(cwd), updates, self._models, self._settings)
        session = Session(kept.id, updates, work)
        self.warm_up()
        self._sessions[session.id] = session
        self._group.start_soon(session.live, servers or [], self._loaded)
        await session.work.menu()
        self.wire.afterwards(session.work.greet)
        return session

    async def _close(self, id: str) -> None:
        session = self._sessions.pop(id, None)
        if session is not None:
            await session.close()

    async def _load(self) -> None:
        await import_slowly(*SLOW_MODULES)
        for prepare in (load_certificates, build_message_schema):
            await anyio.to_thread.run_sync(prepare, abandon_on_cancel=True)
        self._loaded.set()
        await self._models.load_provider()
        resume_gc()

    def _session(self, id: str) -> Session:
        if id not in self._sessions:
            raise NoSuchSession
        return self._sessions[id]


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _require_absolute(cwd: str) -> str:
    if not Path(cwd).is_absolute():
        raise RequestError(-32602, "`cwd` must be an absolute path.")
    return cwd


def resume_gc() -> None:
    """Turn on the garbage collector, if it was paused. It skips the modules, which live as long as the process."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


LEAVE_SECONDS = 5.0
"""Seconds to close all sessions after the host has gone; bounds the wait for an MCP server that does not
exit."""

FOR_PROGRAMS = "This speaks to programs. To talk with it yourself: handrail chat --agent handrail\n"


def run() -> int:
    """Serve until the input ends, then end the process. Returns an exit status only if it could not start."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    keys, places = Keys.take(os.environ), Places.find()
    try:
        settings = load(places.config).agent
    except BadConfig as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if sys.stdin.isatty() or not (_is_stream(0) and _is_stream(1)):
        sys.stderr.write(FOR_PROGRAMS)
    if not (_is_stream(0) and _is_stream(1)):
        return 2
    anyio.run(_serve, keys, places, settings)
    # Exit without cleanup: a thread that waits for a locked keyring would block a normal exit.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


def _is_stream(fd: int) -> bool:
    """Whether a host can be at the other end: a pipe, a socket or a terminal, but not a regular file or
    /dev/null."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


async def _serve(keys: Keys, places: Places, settings: OwnAgentSection) -> None:
    async with anyio.create_task_group() as group:
        folder = places.data / "agent"
        models = Models(keys, settings, last_provider=folder / "provider")
        program = AgentServer(SessionFiles(folder), models, keys, settings, group)
        if not select.select([0], [], [], 0)[
            0
        ]:  # started ahead of time: see the spare programs of agents/pool.py
            program.warm_up()
        with anyio.CancelScope() as listening:
            group.start_soon(_stop_on_signal, listening)
            await program.wire.listen()
        with anyio.move_on_after(LEAVE_SECONDS):
            await program.leave()
        await program.wire.shut()
        group.cancel_scope.cancel()


async def _stop_on_signal(listening: anyio.CancelScope) -> None:
    """Stop listening on SIGTERM or SIGINT, as at the end of the input."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            listening.cancel()
