"""The sessions of connected clients that run now: who works, who is idle, and who wants its user's attention.

Everything comes from the clients' hooks. The keeper remembers where each session runs and what it does, for the next
daemon, but not what was said. A session ends when the client says so, or when its process ends. Without a session
nothing here wakes up.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup

from handrail.clients.hook_event import HookEvent
from handrail.clients.open_work import ClientProcess
from handrail.lazy_dataclass import dataclass
from handrail.server.api.models import now_ms
from handrail.terminal.person_check import find_ancestors, find_tty, wait_for_exit
from handrail.terminal.terminals import Terminals

SESSIONS_MAX = 200
"""Sessions at a time; bounds memory if a client invents new ones. The one without news for the longest is dropped."""
SILENT_SECONDS = 1800.0
"""After this time without news a session ends whose process is not known."""
LONG_TURN_SECONDS = 30.0
"""A turn that took this long is announced when it ends: after a shorter one, the person is still looking."""
LONGEST_MESSAGE = 500
"""Characters kept of a client's last message."""
KEPT_BYTES = 12_000
"""Of the keeper's memory, in which the sign-ins have to fit, too. Sessions without news for the longest are left out."""

CLIENT_TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "opencode": "opencode",
    "qwen": "Qwen Code",
    "copilot": "Copilot CLI",
    "kimi": "Kimi Code",
    "cline": "Cline",
    "cursor": "Cursor",
    "windsurf": "Windsurf",
    "goose": "goose",
    "vscode": "VS Code",
}
"""Names that people know the clients by."""

Activity = Literal["working", "asks", "idle"]
"""asks: the client wants its user's attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    """A conversation of a client that runs now."""

    client: str
    session: str
    """The client's own id of the conversation."""
    folder: str
    started_at: int
    activity: Activity
    since: int
    """When the activity began, in milliseconds since 1970."""
    heard_at: int
    """When its last hook came."""
    tool: str = ""
    """The client's name of the tool that it uses now."""
    message: str = ""
    """The last thing that the client said."""
    process: ClientProcess | None = None
    terminal: str | None = None
    """The id of the terminal that it runs in, if that is one of ours."""
    tty: str = ""
    """The name of its terminal device, such as pts/3."""

    @property
    def title(self) -> str:
        """The client's name for people."""
        return CLIENT_TITLES.get(self.client, self.client)

    @property
    def key(self) -> str:
        """The same as `Caller.key` of its calls."""
        return f"{self.client} {self.session}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientNotice:
    """Something that a client's user may want to know immediately."""

    sort: Literal["stopped", "notified"]
    title: str
    """The client's name for people."""
    folder: str
    message: str


class ClientSessions:
    """Follows the hooks of all clients. Implements `HookObserver`."""

    def __init__(self, terminals: Terminals, kept: bytes = b"") -> None:
        """`kept` is what `keep` was called with before a restart."""
        self._terminals = terminals
        self._sessions: dict[str, ClientSession] = {}
        self._kept = kept
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Called with the serialised sessions after a change. The keeper holds them for the next daemon."""
        self._group: TaskGroup | None = None
        self._watched: set[ClientProcess] = set()
        self.bell = anyio.Event()
        """Set, and replaced by a new one, when a session begins, changes or ends."""
        self.on_notice: list[Callable[[ClientNotice], None]] = []

    async def run(self) -> None:
        """Watch the processes of the sessions, until cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            for session in _decode(self._kept):
                self._set(session)  # which ends it immediately if its process is gone
            await anyio.sleep_forever()

    @property
    def current(self) -> list[ClientSession]:
        """All sessions, oldest first."""
        return sorted(self._sessions.values(), key=lambda session: session.started_at)

    def observe(self, client: str, event: HookEvent, process: ClientProcess | None = None) -> None:
        """A hook reported an event of a client."""
        key = f"{client} {event.session}"
        known = self._sessions.get(key)
        if event.kind == "session_ended":
            self._end(key)
        elif event.session and (known is not None or event.kind != "ignored"):
            before = known or self._begin(client, event)
            after = _apply(before, event)
            if process is not None and before.process is None:
                after = self._place(after, process)
            if after is not None:
                self._set(after)
                self._announce(before, after, event)

    def _begin(self, client: str, event: HookEvent) -> ClientSession:
        now = now_ms()
        return ClientSession(
            client=client,
            session=event.session,
            folder=event.cwd,
            started_at=now,
            activity="idle",
            since=now,
            heard_at=now,
        )

    def _place(self, session: ClientSession, process: ClientProcess) -> ClientSession | None:
        """The session with the process and its terminal; None for an agent that Handrail hosts: it has a thread."""
        above = find_ancestors(process.pid)
        ours = next((each for each in self._terminals.live.values() if each.pid in above), None)
        if ours is not None and ours.pipes:
            return None
        return replace(
            session,
            process=process,
            terminal=None if ours is None else ours.id,
            tty=find_tty(process.pid),
        )

    def _set(self, session: ClientSession) -> None:
        is_new = session.key not in self._sessions
        self._sessions[session.key] = session
        if is_new and len(self._sessions) > SESSIONS_MAX:
            del self._sessions[min(self._sessions.values(), key=lambda each: each.heard_at).key]
        if self._group is not None and session.process is not None:
            self._watch(self._group, session.process)
        elif self._group is not None and is_new:
            self._group.start_soon(self._expire, session.key)
        self._ring()

    def _watch(self, group: TaskGroup, process: ClientProcess) -> None:
        if process not in self._watched:
            self._watched.add(process)
            group.start_soon(self._end_with, process)

    async def _end_with(self, process: ClientProcess) -> None:
        """End the sessions of a process when it ends."""
        try:
            await wait_for_exit(process.pid, process.start)
        finally:
            self._watched.discard(process)
        for key, session in list(self._sessions.items()):
            if session.process == process:
                self._end(key)

    async def _expire(self, key: str) -> None:
        """End a session that has been silent for long, unless its process becomes known."""
        while (session := self._sessions.get(key)) is not None and session.process is None:
            left = SILENT_SECONDS - (now_ms() - session.heard_at) / 1000
            if left <= 0:
                self._end(key)
            await anyio.sleep(max(0.0, left))

    def _end(self, key: str) -> None:
        if self._sessions.pop(key, None) is not None:
            self._ring()

    def _ring(self) -> None:
        bell, self.bell = self.bell, anyio.Event()
        bell.set()
        self._store()

    def _store(self) -> None:
        blob = _encode(self._sessions.values())
        if blob != self._kept:
            self._kept = blob
            self.keep(blob)

    def _announce(self, before: ClientSession, after: ClientSession, event: HookEvent) -> None:
        if event.kind == "notified":
            sort = "notified"
        elif before.activity != "idle" and after.activity == "idle" and _has_worked_long(before):
            sort = "stopped"
        else:
            return
        notice = ClientNotice(sort=sort, title=after.title, folder=after.folder, message=after.message)
        for tell in self.on_notice:
            tell(notice)


def _apply(session: ClientSession, event: HookEvent) -> ClientSession:
    """The session after an event. What a subagent does is work of the session."""
    now = now_ms()
    heard = replace(session, heard_at=now, folder=event.cwd or session.folder)
    match event.kind:
        case "prompted" | "before" | "permission":
            return _turn(heard, "working", now, tool=event.tool)
        case "after":
            return _turn(heard, "working", now)
        case "stopped" if not event.subagent:
            return _turn(heard, "idle", now, message=event.message)
        case "notified":
            asks: Activity = "idle" if session.activity == "idle" else "asks"
            return _turn(heard, asks, now, message=event.message)
        case _:
            return heard


def _turn(
    session: ClientSession, activity: Activity, now: int, *, tool: str = "", message: str = ""
) -> ClientSession:
    """The session with an activity. A turn that goes on keeps its beginning."""
    is_same = session.activity == activity or {session.activity, activity} == {"working", "asks"}
    return replace(
        session,
        activity=activity,
        since=session.since if is_same else now,
        tool=tool,
        message=message[:LONGEST_MESSAGE] or session.message,
    )


def _has_worked_long(session: ClientSession) -> bool:
    return now_ms() - session.since >= LONG_TURN_SECONDS * 1000


def _encode(sessions: Iterable[ClientSession]) -> bytes:
    """The sessions, without what they do from one hook to the next; empty if there are none."""
    newest = sorted(sessions, key=lambda each: each.heard_at, reverse=True)
    entries, size = list[Any](), 0
    for session in newest:
        entry = {**asdict(session), "heard_at": 0, "tool": "", "message": ""}
        size += len(json.dumps(entry)) + 2
        if size > KEPT_BYTES:
            break
        entries.append(entry)
    entries.sort(key=lambda entry: (entry["started_at"], entry["client"], entry["session"]))
    return json.dumps(entries).encode() if entries else b""


def _decode(blob: bytes) -> Iterator[ClientSession]:
    """The sessions of an earlier daemon; none if another version wrote them in another form."""
    try:
        entries = json.loads(blob or b"[]")
        for entry in entries:
            process = entry.pop("process")
            entry |= {"heard_at": now_ms(), "process": None if process is None else ClientProcess(**process)}
            yield ClientSession(**entry)
    except (AttributeError, KeyError, TypeError, ValueError):
        return
