"""What the routes need of the daemon, handed to them as one plain value.

Which page holds each terminal: the one that was typed in last. It may set the size, and the others fit
themselves.

Who is there to be asked: people that follow what happens, and could answer.

Who decides, as the record will say.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from starlette.requests import HTTPConnection

from handrail.agents.conversation.thread_prompts import Prompts
from handrail.agents.pool import Agents
from handrail.agents.registry import Registry
from handrail.gate.gate import Gate
from handrail.gate.tool import Undoes
from handrail.server.access import Access, Person
from handrail.server.api.call_models import Restart
from handrail.server.health import Pulse
from handrail.store.actor import Actor, person_on
from handrail.store.blobs import Blobs, PictureRetention
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.search_index import Index
from handrail.store.threads.threads import Threads
from handrail.terminal.open_shell import Means
from handrail.terminal.shell_marks import Marked
from handrail.terminal.terminals import Terminals


class Holders:
    """At most one for each terminal."""

    def __init__(self) -> None:
        self._holder: dict[str, object] = {}
        self._bell = anyio.Event()

    def may_size(self, terminal: str, who: object) -> bool:
        """It holds the terminal, or nobody does."""
        return self._holder.get(terminal, who) is who

    def hold(self, terminal: str, who: object) -> None:
        if self._holder.get(terminal) is not who:
            self._holder[terminal] = who
            self._ring()

    def let_go(self, terminal: str, who: object | None = None) -> None:
        """It holds the terminal no longer, if it did; without `who`, nobody does."""
        holder = self._holder.get(terminal)
        if holder is not None and who in (None, holder):
            del self._holder[terminal]
            self._ring()

    async def changed(self) -> None:
        """Wakes when some terminal is held by another than before, or by nobody."""
        await self._bell.wait()

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()


class Presence:
    """How many people follow."""

    def __init__(self) -> None:
        self._here = 0

    def count(self) -> int:
        return self._here

    @contextmanager
    def following(self, person: Person) -> Generator[None]:
        """This one is there; whoever may only watch is nobody to ask."""
        self._here += person.approves
        try:
            yield
        finally:
            self._here -= person.approves


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """The parts of a running daemon."""

    journal: Journal
    records: Records
    gate: Gate
    terminals: Terminals
    means: Means
    """What terminals that people open get."""
    undo: Undoes
    marked: Marked
    access: Access
    url: str
    command_line: str
    started: Restart
    pulse: Pulse
    stop: Callable[[bool], None]
    """End the daemon; True ends everything it started too."""
    presence: Presence
    """Who is there to be asked."""
    index: Index
    """Every word, and where it stands."""
    threads: Threads
    images: Blobs
    """Pictures that conversations point to, each under its hash."""
    pictures: PictureRetention
    registry: Registry
    agents: Agents
    prompts: Prompts
    holders: Holders = field(default_factory=Holders)


def person_of(connection: HTTPConnection) -> Person:
    """Whom the guard let in."""
    return connection.scope["handrail.person"]


def by(connection: HTTPConnection) -> Actor:
    return person_on(person_of(connection).place)
