"""Sessions: the threads of all agents as the protocol lists them, and sessions that have no thread yet.

VS Code creates a session whenever its input gets the focus, and disposes of it later. Such a session becomes a thread, and
is announced, with its first prompt. Its URI, which the client chose, is stored with the thread.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, cast

from handrail.agents.conversation.thread_prompts import Prompts
from handrail.agents.registry import ListedAgent
from handrail.config import OWN_AGENT
from handrail.gate.gate import Gate
from handrail.lazy_dataclass import dataclass
from handrail.server.ahp.ahp_wire import (
    ERROR,
    IDLE,
    IN_PROGRESS,
    INPUT_NEEDED,
    IS_ARCHIVED,
    IS_READ,
    PROVIDER_NOT_FOUND,
    SESSION_EXISTS,
    Obj,
    RpcError,
    chat_of_session,
    file_uri,
    iso_time,
    without_none,
)
from handrail.store.records import Records
from handrail.store.threads.thread_records import ThreadRecord
from handrail.store.threads.threads import Threads

MOST_LISTED = 200
"""Threads in the list, newest first."""
MOST_TURNS = 200
"""Turn ids of clients kept for one thread: those of its newest turns."""
MOST_DRAFTS = 100
"""Sessions without a thread. Bounds memory if a client creates them in a loop; the oldest are dropped."""
STATE = "ahp"
"""The thread's state that holds its session's URI, flags and turn ids."""


class Providers:
    """The agents as providers. A provider is the scheme of a URI, so not every agent's name can be one."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}

    def provider(self, agent: str) -> str:
        """The provider of an agent; the same for as long as the daemon runs."""
        for provider, known in self._agents.items():
            if known == agent:
                return provider
        words = re.sub(r"[^a-z0-9.-]", "-", agent.lower())
        provider = base = agent if agent == OWN_AGENT else f"handrail-{words}"
        number = 2
        while provider in self._agents:
            provider, number = f"{base}-{number}", number + 1
        self._agents[provider] = agent
        return provider

    def agent(self, provider: object) -> str:
        """The agent of a provider. Raises RpcError."""
        try:
            return self._agents[cast("str", provider)]
        except (KeyError, TypeError):
            raise RpcError(PROVIDER_NOT_FOUND, f"Handrail hosts no agent {provider!r:.100}.") from None

    def describe(self, listed: Iterable[ListedAgent]) -> list[Obj]:
        """The agents that can be prompted, for the root state. Without a model VS Code greys an agent out."""
        return [self._describe(agent) for agent in listed if agent.found and not agent.why]

    def _describe(self, agent: ListedAgent) -> Obj:
        provider = self.provider(agent.name)
        model = {"id": "default", "provider": provider, "name": f"{agent.title}'s own choice"}
        return {
            "provider": provider,
            "displayName": agent.title,
            "description": f"{agent.title}, hosted by Handrail",
            "models": [{**model, "maxContextWindow": 200_000}],
        }


@dataclass(slots=True, kw_only=True)
class Session:
    """One session."""

    uri: str
    provider: str
    agent: str
    workspace: str | None
    thread: str | None = None
    title: str = ""
    created_at: int = 0
    modified_at: int = 0
    activity: int = IDLE
    is_read: bool = False
    is_archived: bool = False
    turn_ids: dict[str, str] = field(default_factory=dict[str, str])
    """Turn ids that clients chose, by the prompt's message."""

    @property
    def chat(self) -> str:
        return chat_of_session(self.uri)

    @property
    def status(self) -> int:
        return self.activity | IS_READ * self.is_read | IS_ARCHIVED * self.is_archived

    @property
    def shown_title(self) -> str:
        return self.title or "New thread"

    @property
    def folders(self) -> list[str]:
        return [] if self.workspace is None else [file_uri(self.workspace)]

    def summary(self) -> Obj:
        """The session in the list."""
        return {
            "resource": self.uri,
            "provider": self.provider,
            "title": self.shown_title,
            "status": self.status,
            "createdAt": iso_time(self.created_at),
            "modifiedAt": iso_time(self.modified_at),
            "workingDirectories": self.folders,
        }

    def state(self) -> Obj:
        """The state of the session's channel."""
        changeset = {
            "label": "All changes",
            "uriTemplate": f"ahp-changeset:/{self.thread}/session",
            "changeKind": "session",
        }
        return without_none(
            provider=self.provider,
            title=self.shown_title,
            status=self.status,
            workingDirectories=self.folders,
            lifecycle="ready",
            activeClients=[],
            defaultChat=self.chat,
            chats=[self.chat_summary()],
            changesets=None if self.thread is None else [changeset],
        )

    def chat_summary(self) -> Obj:
        return {
            "resource": self.chat,
            "title": self.shown_title,
            "status": self.status,
            "modifiedAt": iso_time(self.modified_at),
        }

    def stored(self) -> dict[str, Any]:
        """What the thread's state keeps."""
        turns = dict(list(self.turn_ids.items())[-MOST_TURNS:])
        return {"session": self.uri, "read": self.is_read, "archived": self.is_archived, "turns": turns}


class Sessions:
    """All sessions that are known."""

    def __init__(self, records: Records, threads: Threads, prompts: Prompts, gate: Gate) -> None:
        self.providers = Providers()
        self._records = records
        self._threads = threads
        self._prompts = prompts
        self._gate = gate
        self._by_uri: dict[str, Session] = {}
        self._by_thread: dict[str, Session] = {}
        self.on_change: Callable[[str, Obj], None] = lambda _method, _params: None
        """Called with each notification about the list."""

    async def load(self) -> None:
        """Read the newest threads."""
        found = await self._records.threads.find(None, MOST_LISTED)
        states = await self._records.threads.states([record.id for record in found], [STATE])
        for record in reversed(found):
            if record.messages:
                self._adopt(record, states.get(record.id, {}).get(STATE, {}))

    def listed(self) -> list[Obj]:
        """The summaries, newest first."""
        found = sorted(self._by_thread.values(), key=lambda session: session.modified_at, reverse=True)
        return [session.summary() for session in found]

    def busy(self) -> list[Session]:
        """The sessions in which an agent works."""
        return [session for session in self._by_thread.values() if session.activity & IN_PROGRESS]

    def of_thread(self, thread: str) -> Session | None:
        return self._by_thread.get(thread)

    async def find(self, uri: str) -> Session | None:
        """The session of a URI, also of a thread that is not in the list."""
        if uri not in self._by_uri:
            provider, _, thread = uri.partition(":/")
            record = await self._records.threads.get(thread)
            if record is not None and self.providers.provider(record.agent) == provider:
                stored = (await self._records.threads.states([thread], [STATE])).get(thread, {})
                self._adopt(record, stored.get(STATE, {}))
        return self._by_uri.get(uri)

    def create(self, uri: str, provider: str, workspace: str | None, now: int) -> Session:
        """A session without a thread, which is not listed. Raises RpcError."""
        agent = self.providers.agent(provider)
        if uri in self._by_uri:
            raise RpcError(SESSION_EXISTS, f"There is a session {uri} already.")
        if not uri.startswith(f"{provider}:/") or len(uri) > 200:
            raise RpcError(PROVIDER_NOT_FOUND, f"{uri[:200]} is no session of {provider}.")
        drafts = [session for session in self._by_uri.values() if session.thread is None]
        for session in drafts[: len(drafts) + 1 - MOST_DRAFTS]:
            del self._by_uri[session.uri]
        session = Session(
            uri=uri,
            provider=provider,
            agent=agent,
            workspace=workspace,
            created_at=now,
            modified_at=now,
            is_read=True,
        )
        self._by_uri[uri] = session
        return session

    def drop(self, session: Session) -> None:
        """Forget a session without a thread."""
        if session.thread is None:
            self._by_uri.pop(session.uri, None)

    def bind(self, session: Session, thread: str) -> None:
        """The session has become a thread."""
        session.thread = thread
        self._by_thread[thread] = session

    def store(self, session: Session) -> None:
        """Keep the session's URI, flags and turn ids with its thread."""
        if session.thread is not None:
            self._threads.put_state(session.thread, STATE, session.stored())

    async def refresh(self, thread: str) -> Session | None:
        """Read what changed in a thread, and announce it. None if it is not listed."""
        record = await self._records.threads.get(thread)
        session = self._by_thread.get(thread)
        if record is None:
            if session is not None:
                self._remove(session)
            return None
        if session is None:
            return self._add(record) if record.messages else None
        before = session.summary()
        self._update(session, record)
        after = session.summary()
        changes = {name: value for name, value in after.items() if value != before[name]}
        if changes:
            self.on_change("root/sessionSummaryChanged", {"session": session.uri, "changes": changes})
        return session

    def announce(self, session: Session) -> None:
        self.on_change("root/sessionAdded", {"summary": session.summary()})

    def _add(self, record: ThreadRecord) -> Session:
        session = self._adopt(record, {})
        self.announce(session)
        return session

    def _remove(self, session: Session) -> None:
        self._by_thread.pop(session.thread or "", None)
        self._by_uri.pop(session.uri, None)
        self.on_change("root/sessionRemoved", {"session": session.uri})

    def _adopt(self, record: ThreadRecord, stored: Obj) -> Session:
        provider = self.providers.provider(record.agent)
        session = Session(
            uri=str(stored.get("session") or f"{provider}:/{record.id}"),
            provider=provider,
            agent=record.agent,
            workspace=record.workspace,
            thread=record.id,
            created_at=record.created_at,
            is_read=bool(stored.get("read", True)),
            is_archived=bool(stored.get("archived")),
            turn_ids=dict(stored.get("turns") or {}),
        )
        self._update(session, record)
        self._by_uri[session.uri] = self._by_thread[record.id] = session
        return session

    def _update(self, session: Session, record: ThreadRecord) -> None:
        session.title = record.title
        session.modified_at = record.updated_at
        session.activity = self._activity(record)

    def _activity(self, record: ThreadRecord) -> int:
        if self._prompts.running(record.id) is None:
            return ERROR if record.stop == "failed" else IDLE
        asks = any(
            call.caller.thread == record.id and call.status == "waiting" for call in self._gate.open.values()
        )
        return INPUT_NEEDED if asks else IN_PROGRESS
