"""What the routes need of the daemon, handed to them as one plain value."""

from collections.abc import Callable
from dataclasses import dataclass, field

from handrail.agents.agents import Agents
from handrail.agents.registry.registry import Registry
from handrail.agents.talk.prompt import Prompts
from handrail.gate.gate import Gate
from handrail.gate.tool import Undoes
from handrail.server.access import Access
from handrail.server.health import Pulse
from handrail.server.holders import Holders
from handrail.server.presence import Presence
from handrail.server.wire import Restart
from handrail.store.blobs import Blobs
from handrail.store.index import Index
from handrail.store.journal import Journal
from handrail.store.query import Records
from handrail.store.retention import PictureRetention
from handrail.store.threads import Threads
from handrail.terminal.open_shell import Means
from handrail.terminal.shell_marks import Marked
from handrail.terminal.terminals import Terminals


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
