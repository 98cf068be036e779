"""The terminal that a path names: its record, itself while it runs, and how it looks now."""

from collections.abc import Sequence

import anyio.to_thread
from fastapi import HTTPException

from handrail.errors import Conflict
from handrail.server.access import Person
from handrail.server.rooms import Rooms
from handrail.server.terminal_views import terminal_view
from handrail.server.terminal_wire import TerminalView
from handrail.server.visible import visible_terminal
from handrail.store.records import TerminalRecord
from handrail.terminal.terminal import Terminal


async def known(rooms: Rooms, id: str) -> TerminalRecord | None:
    """A terminal's record; that of one opened this moment may not be written yet."""
    record = await rooms.records.terminal(id)
    if record is None and rooms.terminals.get(id) is not None:
        await rooms.journal.committed(rooms.journal.head)
        record = await rooms.records.terminal(id)
    return record


async def found(rooms: Rooms, id: str) -> TerminalRecord:
    record = await known(rooms, id)
    if record is None:
        raise HTTPException(404, f"There is no terminal {id}. `handrail terminals` lists what there is.")
    return record


def view_of(rooms: Rooms, record: TerminalRecord, live: Terminal | None = None) -> TerminalView:
    live = live or rooms.terminals.get(record.id)
    return terminal_view(record, live, live.tail if live else rooms.terminals.tail(record.id))


async def views_of(rooms: Rooms, records: Sequence[TerminalRecord], person: Person) -> list[TerminalView]:
    """As this person may see them. Each is a look at its folder, and there may be many: so in a thread."""

    def look() -> list[TerminalView]:
        return [visible_terminal(view_of(rooms, record), person) for record in records]

    return await anyio.to_thread.run_sync(look)


async def running(rooms: Rooms, id: str) -> Terminal:
    record = await found(rooms, id)
    live = rooms.terminals.get(id)
    if live is None or live.exit is not None:
        raise Conflict(f"Terminal {id} ({record.name}) has ended. Its output is kept; open another to go on.")
    return live


async def fresh_view(rooms: Rooms, id: str, live: Terminal | None = None) -> TerminalView:
    """A terminal as it is now that all of this is written down."""
    await rooms.journal.committed(rooms.journal.head)
    return view_of(rooms, await found(rooms, id), live)
