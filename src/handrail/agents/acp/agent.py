"""A running agent: what it offers, its sessions, and what becomes of whoever waits for it when it ends.

Owns the translation of every failure of this wire into one AgentError. Does not know when an agent is started or
shared (agents.py), nor what is said in its sessions.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

import anyio
from anyio.abc import TaskGroup

from handrail.agents.acp.acp_connection import Asked, Peer
from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.acp.capabilities import About, Folder, about_of, greeting
from handrail.agents.acp.process import Process
from handrail.agents.acp.session import Session
from handrail.agents.acp.sessions import Desk, Desks
from handrail.agents.lenient_json import record
from handrail.config import AgentSection
from handrail.store.values import Json

__all__ = ["Agent", "AgentError", "Folder", "Login", "Session"]

ANSWER_SECONDS = 60.0
"""What it gets for any other answer than a prompt's: opening a session may start servers."""
LOGIN_SECONDS = 600.0
"""A person may have to go through a page of somebody else's."""
REASON_MAX = 2000
"""Characters of an agent's own word on why it failed."""
LOGIN_NEEDED = -32000


class Agent:
    """One program that speaks the protocol, and serves any number of sessions."""

    def __init__(self, spec: AgentSection, process: Process, group: TaskGroup, grace: float) -> None:
        self.name, self.grace = spec.name, grace
        self.about = About(spec.title or spec.name)
        self.desks = Desks()
        self.idle_since: float = anyio.current_time()
        self.gone = anyio.Event()
        """Set when nothing of its tree is left."""
        self._spec, self._process = spec, process
        self._peer = Peer(process, self.desks, group)

    @property
    def pid(self) -> int:
        return self._process.terminal.pid

    @property
    def is_over(self) -> bool:
        """It is of no use any more, though its tree may still be ending."""
        return self._process.why is not None

    @property
    def busy(self) -> bool:
        return self._peer.busy

    async def greet(self, seconds: float, keys: Mapping[str, str]) -> None:
        """Begin to talk. Raises AgentError, after which the program is of no use."""
        await self._peer.open()
        try:
            with anyio.fail_after(seconds):
                answer = await self.answer("initialize", self.ask("initialize", greeting(keys)))
        except TimeoutError:
            raise self.failure(f"{self.name} did not answer `initialize` within {seconds:g} s.") from None
        self.about = about_of(record(answer), self.name, self._spec.command)

    async def open(self, folder: Folder, desk: Desk) -> Session:
        """A new session. Raises AgentError, with the ways to log in where that is what is missing."""
        opened, taken = list[Session](), list[str]()

        def on_answer(answer: Any) -> None:
            # Here and not after the await: what it says of the session may come in the same read.
            session = record(answer).get("sessionId")
            if isinstance(session, str) and self.desks.known.get(session, desk) is not desk:
                taken.append(session)
            elif isinstance(session, str):
                opened.append(Session(self, session))
                self.desks.add(session, desk)
                opened[0].tell_settings(answer)

        self.desks.opening += 1
        try:
            await self.request("session/new", folder.params(self.about), on_answer=on_answer)
        finally:
            self.desks.opening -= 1
        if taken:
            raise self.failure(
                f"{self.name} gave this session the id of another one that is open. If it can only have one at a time, "
                "set `one_per_thread = true` for it."
            )
        if not opened:
            raise self.failure(f"{self.name} opened a session without an id.")
        return opened[0]

    async def resume(
        self, session: str, folder: Folder, desk: Desk
    ) -> tuple[Session, Literal["resumed", "loaded"]] | None:
        """Take up a session by the agent's own record of it; None where it has none, or cannot.

        What it reads out of that record while loading it is not given to the desk.
        """
        if self.about.session("resume") and (
            found := await self._again("session/resume", session, folder, desk)
        ):
            return found, "resumed"
        if self.about.loads and (found := await self._again("session/load", session, folder, desk)):
            return found, "loaded"
        return None

    async def login(self, method: str) -> None:
        """Log in by one of its own ways. Raises AgentError."""
        known = next((login for login in self.about.logins if login.id == method), None)
        if known is None:
            raise self.failure(f"{self.name} offers no way to log in that is called {method}.")
        if known.command is not None:
            raise self.failure(f"To log in to {self.name}, run this in a terminal: {known.command}")
        await self.request("authenticate", {"methodId": method}, LOGIN_SECONDS)

    async def end(self, why: str) -> None:
        """End it with its whole tree; returns when nothing of it is left."""
        self._process.give_up(why)
        await self.gone.wait()

    # For its sessions, and for who keeps it

    def ask(self, method: str, params: Json, on_answer: Callable[[Any], None] | None = None) -> Asked:
        return self._peer.ask(method, params, on_answer)

    def notify(self, method: str, params: Json) -> None:
        self._peer.notify(method, params)

    async def answer(self, method: str, asked: Asked) -> Any:
        """Raises AgentError, whatever went wrong."""
        with self._translated(method):
            return await asked.answer()

    async def request(
        self,
        method: str,
        params: Json,
        seconds: float = ANSWER_SECONDS,
        on_answer: Callable[[Any], None] | None = None,
    ) -> Any:
        with self._translated(method):
            try:
                with anyio.fail_after(seconds):
                    return await self._peer.request(method, params, on_answer)
            except TimeoutError:
                raise self.failure(f"{self.name} did not answer `{method}` within {seconds:g} s.") from None

    def failure(self, sentence: str, logins: tuple[Login, ...] = ()) -> AgentError:
        """With what it last said, and what it printed that made no sense."""
        if self._peer.garbage:
            lines = "a line" if self._peer.garbage == 1 else f"{self._peer.garbage} lines"
            last = self._peer.last_garbage
            sentence = f"{sentence} It printed {lines} that made no sense, the last: {last}"
        return AgentError(sentence, self._process.said, logins)

    async def leave(self, why: str) -> None:
        """It is over, for this reason if there is none yet: whoever waits is told, and the tree ends."""
        self._process.give_up(why)
        self.desks.lost(self._process.why or "")
        # Both are bounded by themselves, and the tree does not wait for what unwinds here.
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                group.start_soon(self._peer.shut)
                group.start_soon(self._process.stop)
        self.gone.set()

    async def _again(self, method: str, session: str, folder: Folder, desk: Desk) -> Session | None:
        found = Session(self, session)

        def on_answer(answer: Any) -> None:
            self.desks.add(session, desk)
            found.tell_settings(answer)

        self.desks.add(session, desk, muted=True)
        try:
            params = {"sessionId": session, **folder.params(self.about)}
            await self.request(method, params, on_answer=on_answer)
        except AgentError as problem:
            self.desks.drop(session)
            if problem.code is None or problem.code == LOGIN_NEEDED:
                raise
            return None  # it has no such record any more
        return found

    @contextmanager
    def _translated(self, method: str) -> Generator[None]:
        from acp.exceptions import RequestError  # noqa: PLC0415 - loaded by now; not at the daemon's start

        try:
            yield
        except RequestError as error:
            self._raise(method, error)
        except ConnectionError:
            raise self.failure(self._process.why or f"{self.name} is gone.") from None
        finally:
            self.idle_since = anyio.current_time()

    def _raise(self, method: str, error: Any) -> NoReturn:
        if error.code == LOGIN_NEEDED:
            problem = self.failure(f"{self.name} {_login(error, self.about.logins)}", self.about.logins)
        else:
            problem = self.failure(f"{self.name} refused `{method}`: {_reason(error)}")
        problem.code, problem.data = error.code, error.data
        raise problem from None


def _login(error: Any, ways: tuple[Login, ...]) -> str:
    """In its own words too, where they are more than the protocol's; one without a way to log in needs something else."""
    said = str(error)[:REASON_MAX].strip()
    if said.rstrip(".") in ("", "Authentication required"):
        return "needs you to log in first."
    return f"needs you to log in first. {said}" if ways else f"cannot answer yet. {said}"


def _reason(error: Any) -> str:
    """The error's message, and the details that some agents put the real reason in."""
    data: object = error.data
    details = record(data).get("details", data)
    said = str(error)[:REASON_MAX].rstrip(".") or "no reason given"
    more = f": {details[:REASON_MAX]}" if isinstance(details, str) else "."
    return f"{said} ({error.code}){more}"
