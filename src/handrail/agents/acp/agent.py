"""A running agent: its capabilities, its sessions, and the requests sent to it.

Translates every failure of the connection into AgentError. It does not know when an agent is started or
shared (`pool.py`), or what its sessions contain.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

import anyio
from anyio.abc import TaskGroup

from handrail.agents.acp.acp_connection import AcpConnection, OutgoingRequest
from handrail.agents.acp.agent_errors import LOGIN_NEEDED, AgentError, Login
from handrail.agents.acp.capabilities import AgentInfo, Folder, build_initialize_params, parse_agent_info
from handrail.agents.acp.session import Session
from handrail.agents.acp.sessions import SessionHandler, SessionRouter
from handrail.agents.lenient_json import record
from handrail.config import AgentSection
from handrail.store.values import Json
from handrail.terminal.pipe_process import PipeProcess

__all__ = ["Agent", "AgentError", "Folder", "Login", "Session"]

ANSWER_SECONDS = 60.0
"""Seconds for any answer except a prompt's: opening a session may start MCP servers."""
LOGIN_SECONDS = 600.0
"""Seconds for a login: a person may have to complete it in a browser."""
REASON_MAX = 2000
"""Characters kept of an agent's error message."""


class Agent:
    """One ACP program, which serves any number of sessions."""

    def __init__(self, spec: AgentSection, process: PipeProcess, group: TaskGroup, grace: float) -> None:
        self.name, self.grace = spec.name, grace
        self.about = AgentInfo(spec.title or spec.name)
        self.sessions = SessionRouter()
        self.idle_since: float = anyio.current_time()
        self.gone = anyio.Event()
        """Set when its process tree has ended."""
        self.prompts_begun = self.prompts_running = 0
        """Prompts of all its sessions: what it starts cannot be attributed to one of several."""
        self._spec, self._process = spec, process
        self._connection = AcpConnection(process, self.sessions, group)

    @property
    def pid(self) -> int:
        return self._process.terminal.pid

    @property
    def is_over(self) -> bool:
        """Whether it cannot be used any more; its process tree may still be ending."""
        return self._process.why is not None

    @property
    def busy(self) -> bool:
        return self._connection.busy

    async def greet(self, seconds: float, keys: Mapping[str, str]) -> None:
        """Open the connection and send `initialize`. Raises AgentError, after which the program cannot be
        used."""
        await self._connection.open()
        try:
            with anyio.fail_after(seconds):
                answer = await self.answer(
                    "initialize", self.ask("initialize", build_initialize_params(keys))
                )
        except TimeoutError:
            raise self.failure(f"{self.name} did not answer `initialize` within {seconds:g} s.") from None
        self.about = parse_agent_info(record(answer), self.name, self._spec.command)

    async def open(self, folder: Folder, handler: SessionHandler) -> Session:
        """Open a new session. Raises AgentError, with the ways to log in if a login is missing."""
        return await self._open_by("session/new", folder.params(self.about), handler)

    async def copy_session(self, session: str, folder: Folder, handler: SessionHandler) -> Session | None:
        """Open a copy of a session; None if the agent cannot copy it. Raises AgentError if it cannot answer."""
        if not self.about.session("fork"):
            return None
        try:
            params = {"sessionId": session, **folder.params(self.about)}
            return await self._open_by("session/fork", params, handler)
        except AgentError as problem:
            if problem.code is None or problem.code == LOGIN_NEEDED:
                raise
            return None  # it has no record of this session

    async def _open_by(self, method: str, params: Json, handler: SessionHandler) -> Session:
        sessions, duplicates = list[Session](), list[str]()

        def on_answer(answer: Any) -> None:
            # Here and not after the await: updates of the session may arrive in the same read.
            session = record(answer).get("sessionId")
            if isinstance(session, str) and self.sessions.known.get(session, handler) is not handler:
                duplicates.append(session)
            elif isinstance(session, str):
                sessions.append(Session(self, session))
                self.sessions.add(session, handler)
                sessions[0].tell_settings(answer)

        self.sessions.opening += 1
        try:
            await self.request(method, params, on_answer=on_answer)
        finally:
            self.sessions.opening -= 1
        if duplicates:
            raise self.failure(
                f"{self.name} gave this session the id of another one that is open. If it can only have one at a time, "
                "set `one_per_thread = true` for it."
            )
        if not sessions:
            raise self.failure(f"{self.name} opened a session without an id.")
        return sessions[0]

    async def resume(
        self, session: str, folder: Folder, handler: SessionHandler
    ) -> tuple[Session, Literal["resumed", "loaded"]] | None:
        """Resume a session from the agent's own record; None if it has no such record, or cannot.

        History that the agent replays while loading is not passed to the handler.
        """
        if self.about.session("resume") and (
            session_found := await self._resume_by("session/resume", session, folder, handler)
        ):
            return session_found, "resumed"
        if self.about.loads and (
            session_found := await self._resume_by("session/load", session, folder, handler)
        ):
            return session_found, "loaded"
        return None

    async def load(
        self, session: str, folder: Folder, handler: SessionHandler
    ) -> tuple[Session, Literal["resumed", "loaded"]] | None:
        """Take up a session that we do not know: loaded if the agent can, so that the handler gets its history.

        None if the agent can neither load nor resume it. Raises AgentError.
        """
        if self.about.loads and (
            loaded := await self._resume_by("session/load", session, folder, handler, muted=False)
        ):
            return loaded, "loaded"
        if self.about.session("resume") and (
            resumed := await self._resume_by("session/resume", session, folder, handler)
        ):
            return resumed, "resumed"
        return None

    async def login(self, method: str) -> None:
        """Log in by one of the agent's methods. Raises AgentError."""
        login_method = next((login for login in self.about.logins if login.id == method), None)
        if login_method is None:
            raise self.failure(f"{self.name} offers no way to log in that is called {method}.")
        if login_method.command is not None:
            raise self.failure(f"To log in to {self.name}, run this in a terminal: {login_method.command}")
        await self.request("authenticate", {"methodId": method}, LOGIN_SECONDS)

    async def end(self, why: str) -> None:
        """End the program; returns when its process tree has ended."""
        self._process.give_up(why)
        await self.gone.wait()

    # For its sessions and for the pool

    def ask(
        self, method: str, params: Json, on_answer: Callable[[Any], None] | None = None
    ) -> OutgoingRequest:
        return self._connection.ask(method, params, on_answer)

    def notify(self, method: str, params: Json) -> None:
        self._connection.notify(method, params)

    async def answer(self, method: str, request: OutgoingRequest) -> Any:
        """Wait for the answer to a request. Raises AgentError for any failure."""
        with self._translate_errors(method):
            return await request.answer()

    async def request(
        self,
        method: str,
        params: Json,
        seconds: float = ANSWER_SECONDS,
        on_answer: Callable[[Any], None] | None = None,
    ) -> Any:
        with self._translate_errors(method):
            try:
                with anyio.fail_after(seconds):
                    return await self._connection.request(method, params, on_answer)
            except TimeoutError:
                raise self.failure(f"{self.name} did not answer `{method}` within {seconds:g} s.") from None

    def failure(self, sentence: str, logins: tuple[Login, ...] = ()) -> AgentError:
        """Build an AgentError with its last standard error, and its last line of invalid output."""
        if self._connection.garbage:
            lines = "a line" if self._connection.garbage == 1 else f"{self._connection.garbage} lines"
            last = self._connection.last_garbage
            sentence = f"{sentence} It printed {lines} that made no sense, the last: {last}"
        return AgentError(sentence, self._process.stderr_lines, logins)

    async def leave(self, why: str) -> None:
        """Mark it as over: fail all waiting requests, notify the sessions, end the process tree."""
        self._process.give_up(why)
        self.sessions.lost(self._process.why or "")
        # Both are bounded, and the tree must not wait for the requests to unwind.
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                group.start_soon(self._connection.shut)
                group.start_soon(self._process.stop)
        self.gone.set()

    async def _resume_by(
        self, method: str, session: str, folder: Folder, handler: SessionHandler, *, muted: bool = True
    ) -> Session | None:
        resumed = Session(self, session)

        def on_answer(answer: Any) -> None:
            self.sessions.add(session, handler, replays=method == "session/load")
            resumed.tell_settings(answer)

        self.sessions.add(session, handler, muted=muted)
        try:
            params = {"sessionId": session, **folder.params(self.about)}
            await self.request(method, params, on_answer=on_answer)
        except AgentError as problem:
            self.sessions.drop(session)
            if not problem.is_refusal:
                raise
            return None  # it has no record of this session
        if method == "session/load":
            await self.sessions.finish_replay(session)
        return resumed

    @contextmanager
    def _translate_errors(self, method: str) -> Generator[None]:
        from acp.exceptions import RequestError  # noqa: PLC0415 - loaded by now; not at the daemon's start

        try:
            yield
        except RequestError as error:
            self._raise_agent_error(method, error)
        except ConnectionError:
            raise self.failure(self._process.why or f"{self.name} is gone.") from None
        finally:
            self.idle_since = anyio.current_time()

    def _raise_agent_error(self, method: str, error: Any) -> NoReturn:
        if error.code == LOGIN_NEEDED:
            problem = self.failure(
                f"{self.name} {_describe_login(error, self.about.logins)}", self.about.logins
            )
        else:
            problem = self.failure(f"{self.name} refused `{method}`: {_describe_error(error)}")
        problem.code, problem.data = error.code, error.data
        raise problem from None


def _describe_login(error: Any, ways: tuple[Login, ...]) -> str:
    """Describe a missing login, with the agent's own message unless it is the protocol's default."""
    message = str(error)[:REASON_MAX].strip()
    if message.rstrip(".") in ("", "Authentication required"):
        return "needs you to log in first."
    return f"needs you to log in first. {message}" if ways else f"cannot answer yet. {message}"


def _describe_error(error: Any) -> str:
    """The error's message, with the details that some agents add."""
    data: object = error.data
    details = record(data).get("details", data)
    message = str(error)[:REASON_MAX].rstrip(".") or "no reason given"
    more = f": {details[:REASON_MAX]}" if isinstance(details, str) else "."
    return f"{message} ({error.code}){more}"
