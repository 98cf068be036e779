"""The daemon's parts that routes and sockets use, passed to them as one value.

Also the state that requests share: which page sets a terminal's size, and how many people are connected.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import field

import anyio
from starlette.requests import HTTPConnection

from handrail.agents.conversation.thread_prompts import Prompts
from handrail.agents.pool import Agents
from handrail.agents.registry import Registry
from handrail.clients.transcripts.transcripts import Transcripts
from handrail.gate.gate import Gate
from handrail.gate.rules.accepted_policy import AcceptedPolicy
from handrail.gate.tool import Undoer
from handrail.lazy_dataclass import dataclass
from handrail.server.access import Access, Person
from handrail.server.api.daemon_models import Restart
from handrail.server.client_sessions import ClientSessions
from handrail.server.demo_terminal import DemoTerminal
from handrail.server.device_listener import DeviceListener
from handrail.server.editor_pairings import EditorPairings
from handrail.server.health import LoopMonitor
from handrail.server.settings_file import SettingsFile
from handrail.store.actor import Actor, person_on
from handrail.store.blobs import Blobs, ImageRetention
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.search_index import SearchIndex
from handrail.store.threads.threads import Threads
from handrail.terminal.open_shell import TerminalSettings
from handrail.terminal.person_check import DoorLaunchers
from handrail.terminal.shell_marks import MarksCache
from handrail.terminal.terminals import Terminals
from handrail.upstream.servers import Servers


class SizeOwners:
    """Which page may set the size of each terminal: the page that was typed in last. The others adapt."""

    def __init__(self) -> None:
        self._owners: dict[str, object] = {}
        self._bell = anyio.Event()

    def can_resize(self, terminal: str, who: object) -> bool:
        """Whether `who` owns the size, or no page does."""
        return self._owners.get(terminal, who) is who

    def is_owner(self, terminal: str, who: object) -> bool:
        return self._owners.get(terminal) is who

    def claim(self, terminal: str, who: object) -> None:
        if self._owners.get(terminal) is not who:
            self._owners[terminal] = who
            self._ring()

    def release(self, terminal: str, who: object | None = None) -> None:
        """Give up the size if `who` owns it; without `who`, take it from any owner."""
        owner = self._owners.get(terminal)
        if owner is not None and who in (None, owner):
            del self._owners[terminal]
            self._ring()

    async def changed(self) -> None:
        """Wait until the owner of any terminal's size changes."""
        await self._bell.wait()

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()


class Presence:
    """Counts the connected people who can answer approvals, and those whose page is hidden."""

    def __init__(self) -> None:
        self._count = 0
        self._hidden: set[object] = set()

    def count(self) -> int:
        return self._count

    def count_looking(self) -> int:
        """Those whose page is not hidden. A command line never is."""
        return self._count - len(self._hidden)

    @contextmanager
    def following(self, person: Person) -> Generator[Callable[[bool], None]]:
        """Count this person while the context is open, if they may approve. Yields a function to say "hidden"."""
        own = object()

        def set_hidden(hidden: bool) -> None:
            if hidden and person.approves:
                self._hidden.add(own)
            else:
                self._hidden.discard(own)

        self._count += person.approves
        try:
            yield set_hidden
        finally:
            self._count -= person.approves
            self._hidden.discard(own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The parts of a running daemon that the server uses."""

    journal: Journal
    records: Records
    gate: Gate
    policy: AcceptedPolicy
    """The rules, trusted folders and settings that a person accepted."""
    settings_file: SettingsFile
    demo: DemoTerminal
    terminals: Terminals
    settings: TerminalSettings
    """Settings for terminals that people open: environment, shell, limits."""
    undo: Undoer
    marked: MarksCache
    access: Access
    launchers: DoorLaunchers
    """The processes of agents, which no key of a browser signs in."""
    url: str
    command_line: str
    started: Restart
    pulse: LoopMonitor
    stop: Callable[[bool], None]
    """Stop the daemon. True also stops every process it started."""
    presence: Presence
    """The people who can answer approvals now."""
    index: SearchIndex
    """Full-text search."""
    threads: Threads
    images: Blobs
    """Images in threads, keyed by hash."""
    pictures: ImageRetention
    registry: Registry
    agents: Agents
    prompts: Prompts
    clients: ClientSessions
    """The sessions of connected clients that run now."""
    editors: EditorPairings
    devices: DeviceListener
    """Where paired devices connect."""
    servers: Servers
    """The MCP servers behind the gate."""
    transcripts: Transcripts = field(default_factory=Transcripts.of_user)
    """Conversations in the clients' own files."""
    size_owners: SizeOwners = field(default_factory=SizeOwners)


def person_of(connection: HTTPConnection) -> Person:
    """The person that the guard authenticated."""
    return connection.scope["handrail.person"]


def actor_of(connection: HTTPConnection) -> Actor:
    """The actor to record for a request."""
    return person_on(person_of(connection).place)


def is_from_device(connection: HTTPConnection) -> bool:
    """Whether a request came to the listener for devices."""
    return connection.scope.get("handrail.device") is not None
