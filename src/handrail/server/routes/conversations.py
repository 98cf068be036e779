"""The conversation that a path names, the agent that a body names, and the folder that a thread is begun in."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import anyio
import anyio.to_thread
from fastapi import HTTPException

from handrail.errors import Unwritable
from handrail.server.hello import is_too_wide
from handrail.server.rooms import Rooms
from handrail.server.routes.made import folder_of
from handrail.server.thread_views import thread_view
from handrail.server.thread_wire import ThreadView
from handrail.store.thread.record import ThreadRecord

CATCH_UP_SECONDS = 0.5
"""For what was said and told to be on disk; a disk that hangs must not keep anybody from looking."""


async def caught_up(rooms: Rooms) -> None:
    """Let the record know what memory knows: who has just seen something end shall find it ended there."""
    with anyio.move_on_after(CATCH_UP_SECONDS), contextlib.suppress(Unwritable):
        await rooms.threads.written()


async def found(rooms: Rooms, id: str) -> ThreadRecord:
    record = await rooms.records.thread(id)
    if record is None:
        raise HTTPException(404, f"There is no thread {id}. `handrail threads` lists what there is.")
    return record


async def fresh_view(rooms: Rooms, id: str) -> ThreadView:
    """A thread as it is now that all of this is written down."""
    await rooms.threads.written()
    return view_of(rooms, await found(rooms, id))


def view_of(rooms: Rooms, record: ThreadRecord) -> ThreadView:
    """What runs and what waits is known in memory, before it is on disk."""
    queued = record.queued
    with contextlib.suppress(LookupError):  # it was deleted since the record was read
        queued = len(rooms.threads.queued(record.id))
    return thread_view(record, rooms.prompts.running(record.id), queued)


def known_agent(rooms: Rooms, name: str, status: int = 422) -> str:
    if rooms.registry.spec(name) is None:
        raise HTTPException(status, f"There is no agent {name}. `handrail agents` lists what there is.")
    return name


async def usual_agent(rooms: Rooms) -> str:
    """Whom a person would talk to: the one they talked to last, or else the first that is there and lacks nothing."""
    last = await rooms.records.threads(limit=1)
    if last and rooms.registry.spec(last[0].agent) is not None:
        return last[0].agent
    listed = await rooms.registry.listing()
    return next(agent.name for agent in listed if agent.found and not agent.why)


async def welcome(rooms: Rooms) -> None:
    """On the first run there is a thread already: who just wants to talk needs no setup."""
    if not await rooms.records.threads(limit=1):
        with contextlib.suppress(Unwritable):  # whoever begins one is told
            await rooms.threads.default(None, await usual_agent(rooms))


async def workspace(text: str | None) -> str | None:
    """The folder a thread works in, whole and without links."""
    return None if text is None else await anyio.to_thread.run_sync(_workspace, folder_of(text))


def _workspace(text: str) -> str:
    folder = Path(os.path.realpath(text))
    if not folder.is_dir():
        raise HTTPException(422, f"{text} is no folder. Name one that exists.")
    if is_too_wide(folder):
        raise HTTPException(
            422, f"{text} is your home, or holds it, which is too wide for an agent. Name a folder within."
        )
    return str(folder)


async def files(paths: Iterable[str], below: str | None) -> list[Path]:
    """The files that a prompt points to."""

    def look() -> list[Path]:
        return [_file(path, below) for path in paths]

    return await anyio.to_thread.run_sync(look)


def _file(text: str, below: str | None) -> Path:
    path = Path(below or "/", text)
    if "\0" in text or not path.exists():
        raise HTTPException(422, f"There is no file {text} in {below or '/'}.")
    return path
