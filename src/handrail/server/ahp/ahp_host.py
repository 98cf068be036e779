"""The agent host: its channels and sessions, and the tasks that keep them current with the journal.

A channel is opened by its first subscriber, and closed a while after the last one has left, so that a client that
reconnects can catch up with the actions it missed.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from handrail.gate.call import Call
from handrail.server.ahp._changesets import Changesets, changeset_actions, thread_of_changeset
from handrail.server.ahp._terminal_channels import TerminalChannels
from handrail.server.ahp.ahp_sessions import Session, Sessions
from handrail.server.ahp.ahp_wire import NOT_FOUND, ROOT, Obj, RpcError, session_of_chat
from handrail.server.ahp.call_cards import CallCards
from handrail.server.ahp.channels import Channels
from handrail.server.ahp.chats import Chat
from handrail.server.ahp.contents import Contents, FileEdits
from handrail.server.ahp.reducers import reduce_changeset, reduce_root, reduce_session
from handrail.server.context import ServerContext
from handrail.store.blobs import Blobs
from handrail.store.events import Entry, Event
from handrail.terminal.terminal import Terminal

log = logging.getLogger(__name__)

IDLE_SECONDS = 60.0
"""How long a channel without subscribers stays open: longer than a client takes to reconnect."""
NO_SESSION = "handrail:/none"
"""The session of terminals that belong to no thread."""
AGENTS_SECONDS = 30.0
"""How often the list of agents is read again: one may have been installed."""

_KINDS = frozenset(
    [
        "ThreadOpened",
        "ThreadRenamed",
        "ThreadDeleted",
        "MessageOpened",
        "MessageEnded",
        "PromptSent",
        "PromptDropped",
        "OperationOpened",
        "OperationEnded",
        "CallOpened",
        "CallStarted",
        "CallHandedBack",
        "CallSettled",
        "ApprovalOpened",
        "ApprovalAnswered",
        "ApprovalExpired",
        "ApprovalWithdrawn",
        "TerminalOpened",
        "TerminalEnded",
        "FilesRestored",
    ]
)


class AhpHost:
    """The host that all connections share."""

    def __init__(self, context: ServerContext, blobs: Blobs) -> None:
        self.context = context
        self.channels = Channels()
        self.contents = Contents(blobs)
        edits = FileEdits(self.contents)
        self.sessions = Sessions(context.records, context.threads, context.prompts, context.gate)
        self.sessions.on_change = self.channels.notify
        self.cards = CallCards(context.gate, context.records, context.terminals, edits)
        self.terminals = TerminalChannels(self.channels, context.terminals, self._find_claim)
        self._changesets = Changesets(context.records, self.contents, edits)
        self._chats: dict[str, Chat] = {}
        self._opening = anyio.Lock()
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._idle_since: dict[str, float] = {}
        self._group: TaskGroup | None = None
        self._threads_of_terminals: dict[str, str] = {}
        """Threads whose calls ran in a terminal, which may run on without its call."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep all channels current until cancelled. It has started when the agents are known."""
        journal = self.context.journal
        head = journal.head
        await self.sessions.load()
        async with anyio.create_task_group() as group:
            self._group = group
            await self._open_root()
            group.start_soon(journal.follow, head, self._hear, _is_relevant)
            group.start_soon(self._close_idle)
            group.start_soon(self._refresh_agents)
            task_status.started()

    # Channels

    async def subscribe(self, uri: str) -> Obj:
        """The snapshot of a channel, which is opened if needed. Raises RpcError."""
        async with self._opening:
            if self.channels.get(uri) is None:
                await self._open(uri)
        return self.channels.snapshot(uri)

    async def chat(self, session: Session) -> Chat:
        """The running chat of a session."""
        async with self._opening:
            return await self._get_chat(session)

    async def find_session(self, uri: str) -> Session:
        """The session of its own URI, or of its chat's. Raises RpcError."""
        session = await self.sessions.find(session_of_chat(uri) or uri)
        if session is None:
            raise RpcError(NOT_FOUND, f"There is no session {uri[:200]}.")
        return session

    async def _open(self, uri: str) -> None:
        thread = thread_of_changeset(uri)
        if thread is not None:
            files = await self._changesets.files(thread)
            self.channels.open(uri, {"status": "ready", "files": files}, reduce_changeset)
        elif uri.startswith(("ahp-terminal:", "agenthost-terminal:")):
            self.terminals.open(uri)
            self._start(uri, partial(self.terminals.follow, uri))
        else:
            await self._open_session(uri)

    async def _open_session(self, uri: str) -> None:
        session = await self.find_session(uri)
        chat = await self._get_chat(session)
        if uri == session.uri:
            self.channels.open(uri, session.state(), reduce_session)
            chat.publish_needed()

    async def _get_chat(self, session: Session) -> Chat:
        chat = self._chats.get(session.uri)
        if chat is None:
            chat = Chat(session, self.context.threads, self.cards, self.channels)
            await chat.load()
            self._chats[session.uri] = chat
            self.follow_chat(chat)
        return chat

    def follow_chat(self, chat: Chat) -> None:
        """Follow the thread of a chat, if it has one by now."""
        if chat.session.thread is not None:
            self._start(chat.uri, chat.follow)

    def _start(self, uri: str, work: Callable[[], Awaitable[None]]) -> None:
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    await work()
                except LookupError:
                    self.close(uri)  # its thread or terminal is gone
                except Exception:
                    log.exception("the channel %s failed", uri)
                    self.close(uri)

        if self._group is not None:
            self._scopes[uri] = scope
            self._group.start_soon(run)

    def close(self, uri: str) -> None:
        """Close a channel and end its task."""
        self.channels.close(uri)
        self._chats.pop(session_of_chat(uri) or "", None)
        if (scope := self._scopes.pop(uri, None)) is not None:
            scope.cancel()

    async def _close_idle(self) -> None:
        while True:
            await anyio.sleep(IDLE_SECONDS / 4)
            now = anyio.current_time()
            for uri in self.channels.unwatched():
                if now - self._idle_since.setdefault(uri, now) > IDLE_SECONDS and not self._is_needed(uri):
                    self.close(uri)
                    del self._idle_since[uri]
            unwatched = set(self.channels.unwatched())
            self._idle_since = {uri: at for uri, at in self._idle_since.items() if uri in unwatched}

    def _is_needed(self, uri: str) -> bool:
        """The root, and the chat of a session that has subscribers."""
        session = session_of_chat(uri)
        return uri == ROOT or (session is not None and self.channels.get(session) is not None)

    # The journal

    async def _hear(self, entries: Sequence[Entry]) -> None:
        events = [entry.event for entry in entries]
        threads = await self._find_threads(events)
        for thread in threads:
            await self._refresh_thread(thread)
        kinds = {event.kind for event in events}
        if kinds & {"TerminalOpened", "TerminalEnded", "CallSettled", "CallHandedBack"}:
            self.terminals.publish_claims()
            live = self.context.terminals.live
            self._threads_of_terminals = {
                terminal: thread
                for terminal, thread in self._threads_of_terminals.items()
                if terminal in live
            }
            self.publish_terminals()

    async def _find_threads(self, events: Sequence[Event]) -> list[str]:
        """The threads that these events are about."""
        calls = [call for event in events if isinstance(call := getattr(event, "call", None), str)]
        places = await self.context.records.calls.places(calls)
        named = [_thread_of(event) for event in events] + [place.thread for place in places.values()]
        if any(event.kind == "OperationEnded" for event in events):
            named += [session.thread for session in self.sessions.busy()]
        return [thread for thread in dict.fromkeys(named) if thread is not None]

    async def _refresh_thread(self, thread: str) -> None:
        session = await self.sessions.refresh(thread)
        if session is None:
            return
        chat = self._chats.get(session.uri)
        if chat is not None:
            await chat.sync()
        self.publish_session(session)
        await self._publish_changes(thread)

    def publish_session(self, session: Session) -> None:
        """Publish what changed in a session's state."""
        channel = self.channels.get(session.uri)
        if channel is None:
            return
        if channel.state["title"] != session.shown_title:
            title: Obj = {"type": "session/titleChanged", "title": session.shown_title}
            self.channels.publish(session.uri, title)
        chat: Obj = {key: value for key, value in session.chat_summary().items() if key != "resource"}
        if channel.state.get("changesets") != session.state().get("changesets"):
            changed: Obj = {"type": "session/changesetsChanged", "changesets": session.state()["changesets"]}
            self.channels.publish(session.uri, changed)
        if any(channel.state["chats"][0].get(key) != value for key, value in chat.items()):
            update: Obj = {"type": "session/chatUpdated", "chat": session.chat, "changes": chat}
            self.channels.publish(session.uri, update)

    async def _publish_changes(self, thread: str) -> None:
        uri = f"ahp-changeset:/{thread}/session"
        if self.channels.get(uri) is None:
            return
        files = await self._changesets.files(thread)
        for action in changeset_actions(self.channels.state(uri)["files"], files):
            self.channels.publish(uri, action)

    # The root

    async def _open_root(self) -> None:
        listed = await self.context.registry.listing()
        state: Obj = {
            "agents": self.sessions.providers.describe(listed),
            "activeSessions": 0,
            "terminals": self.terminals.listed(),
            "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
        }
        self.channels.open(ROOT, state, reduce_root)

    async def _refresh_agents(self) -> None:
        while True:
            await anyio.sleep(AGENTS_SECONDS)
            agents = self.sessions.providers.describe(await self.context.registry.listing())
            if agents != self.channels.state(ROOT)["agents"]:
                self.channels.publish(ROOT, {"type": "root/agentsChanged", "agents": agents})

    def publish_terminals(self) -> None:
        """List the terminals that run now."""
        listed = self.terminals.listed()
        if listed != self.channels.state(ROOT)["terminals"]:
            self.channels.publish(ROOT, {"type": "root/terminalsChanged", "terminals": listed})

    # Claims

    def _find_claim(self, live: Terminal) -> Obj:
        call = None if live.note.call is None else self.context.gate.open.get(live.note.call)
        if call is not None and call.caller.thread is not None:
            self._threads_of_terminals[live.id] = call.caller.thread
        session = self.sessions.of_thread(self._threads_of_terminals.get(live.id, ""))
        if session is None:
            return {"kind": "session", "session": NO_SESSION}
        claim: Obj = {"kind": "session", "session": session.uri, "chat": session.chat}
        is_over = call is None or call.outcome is not None or call.handed_back
        return claim if call is None or is_over else {**claim, **self._find_card(session, call)}

    def _find_card(self, session: Session, call: Call) -> Obj:
        """The turn and tool call that show a call of ours."""
        channel = self.channels.get(session.chat)
        turn: Obj | None = None if channel is None else channel.state.get("activeTurn")
        for part in () if turn is None else turn["responseParts"]:
            shown: Obj = part.get("toolCall", {})
            if turn is not None and shown.get("_meta", {}).get("handrail/call") == call.id:
                return {"turnId": turn["id"], "toolCallId": shown["toolCallId"]}
        return {}


def _is_relevant(event: Event) -> bool:
    return event.kind in _KINDS


def _thread_of(event: Event) -> str | None:
    caller = getattr(event, "caller", None)
    thread = getattr(event, "thread", None) or getattr(caller, "thread", None)
    return thread if isinstance(thread, str) else None
