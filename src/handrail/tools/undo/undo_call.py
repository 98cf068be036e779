"""Undo: taking back what calls did to files, by call, by operation, by thread, or an earlier undo.

Owns what belongs to an undo and the order of it: look, show, keep what is there, write down what will be done, do it.
It does not judge (undoing.py), look at files (undo_step.py) or touch them (undo_hands.py). It covers the files that our
own tools changed; what commands did it names and leaves alone.

What an id stands for when it is undone: a call, an undo, an operation or a thread, and the calls that are
in it.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread

from handrail.errors import Conflict, Unwritable
from handrail.gate.call import new_id
from handrail.gate.tool import Of, UndoFile, UndoPlan, UnknownUndo
from handrail.store.actor import Actor
from handrail.store.blobs import Blobs
from handrail.store.calls import CallRecord
from handrail.store.events import FilesRestored
from handrail.store.file_changes import ChangeRecord
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.values import FileChange
from handrail.tools.results import brief, some
from handrail.tools.undo.undo_files import Hands
from handrail.tools.undo.undo_plan import Step, step_of, with_undos

_COMMANDS = ("execute_command", "send_to_terminal", "create_tracked_terminal")
"""What runs whatever it is told: nobody knows all that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What shall be undone."""

    id: str
    of: Of
    title: str
    calls: tuple[str, ...]
    """Or the one earlier undo."""
    not_covered: tuple[str, ...]


async def undone(records: Records, id: str) -> Undone:
    """Raises `UnknownUndo`."""
    call = await records.call(id)
    if call is not None:
        return await _undone(records, id, "call", [call.call])
    undo = await records.undo(id)
    if undo is not None:
        title = f"Undo of {', '.join(undo.calls)}"
        return Undone(id=id, of="undo", title=brief(title), calls=(id,), not_covered=())
    if calls := await records.calls_of_operation(id):
        return await _undone(records, id, "operation", calls)
    if calls := await records.calls_of_thread(id):
        return await _undone(records, id, "thread", calls)
    raise UnknownUndo(id)


async def _undone(records: Records, id: str, of: Of, calls: Sequence[CallRecord]) -> Undone:
    kept = {change.call for change in await records.changes_of(call.id for call in calls)}
    started = [call for call in calls if call.started_at is not None and call.id not in kept]
    return Undone(
        id=id,
        of=of,
        title=calls[0].title if of == "call" else f"{some(len(calls), 'call')} of {of} {id}",
        calls=tuple(call.id for call in calls if call.id in kept),
        not_covered=tuple([line for call in started for line in await _not_covered(records, call)]),
    )


async def _not_covered(records: Records, call: CallRecord) -> list[str]:
    """Of a call that started, and of which nothing is kept."""
    if call.tool in _COMMANDS:
        return [f"Whatever this changed: {brief(call.title, 200)}"]
    if call.assurance != "bound":
        return [f"Whatever this changed, done by others: {brief(call.title, 200)}"]
    if call.tool not in _WRITERS:
        return []
    detail = await records.call(call.id)
    changed = detail.receipt.files_changed if detail and detail.receipt else ()
    return [f"{path}: what it held before call {call.id} was not kept." for path in changed]


_WRITERS = ("write_file", "edit_file", "apply_diff")

DIFFS_MAX = 4 << 20
"""Characters of all the diffs of one preview; the rest are counted only."""
SECONDS_MAX = 120.0
"""How long a disk that hangs may hold up an undo that nobody waits for any more."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is undone, and what that does to each file."""

    what: Undone
    steps: tuple[Step, ...]

    @property
    def plan(self) -> UndoPlan:
        what = self.what
        return UndoPlan(
            what=what.id,
            of=what.of,
            title=what.title,
            digest=_digest(what.id, self.steps),
            files=tuple(_bounded(step.file for step in self.steps)),
            not_covered=what.not_covered,
        )


class Undo:
    """A person's way back."""

    def __init__(self, records: Records, journal: Journal, blobs: Blobs, own: Sequence[Path] = ()) -> None:
        """`own` are Handrail's own files; a person is told when one of them, or another protected one, is undone."""
        self._records = records
        self._journal = journal
        self._blobs = blobs
        self._own = tuple(own)
        self._one = anyio.Lock()

    async def preview(self, id: str) -> UndoPlan:
        """What undoing it would do. Raises `UnknownUndo`."""
        return (await self._work(id)).plan

    async def undo(self, id: str, digest: str, by: Actor) -> UndoPlan:
        """Do what was shown; every file that can be put back is, and each tells what became of it.

        Raises `UnknownUndo`, `Conflict` when it would do something else by now, and `Unwritable`.
        """
        async with self._one:
            work = await self._work(id)
            plan = work.plan
            if plan.digest != digest:
                raise Conflict(
                    "What this undo would do is no longer what you were shown. Look at it again, then decide."
                )
            if not any(step.acts for step in work.steps):
                return plan
            with anyio.fail_after(SECONDS_MAX, shield=True):
                return await self._done(work, plan, by)

    async def _done(self, work: _Work, plan: UndoPlan, by: Actor) -> UndoPlan:
        hands = Hands(work.steps, self._blobs, self._own)
        changes = await anyio.to_thread.run_sync(hands.keep)
        undo = await self._written_down(work.what.calls, changes, by) if changes else None
        files = await anyio.to_thread.run_sync(hands.carry_out)
        return replace(plan, files=tuple(_bounded(files)), undo=undo)

    async def _written_down(self, calls: tuple[str, ...], changes: tuple[FileChange, ...], by: Actor) -> str:
        undo = new_id("u")
        event = FilesRestored(undo=undo, calls=calls, files=changes, by=str(by))
        await self._journal.committed(self._journal.append(event))
        return undo

    async def _work(self, id: str) -> _Work:
        with suppress(Unwritable):  # what could not be written down never happened
            await self._journal.committed(self._journal.head)
        what = await undone(self._records, id)
        histories = await self._histories(what.calls)
        undos = await self._records.undos({record.call for history in histories for record in history})
        selected = with_undos(what.calls, undos)

        def look() -> tuple[Step, ...]:
            return tuple(step_of(history, selected, self._blobs, self._own) for history in histories)

        return _Work(what, await anyio.to_thread.run_sync(look))

    async def _histories(self, calls: Iterable[str]) -> list[list[ChangeRecord]]:
        """Of each file that these calls changed, all that ever happened to it; the latest changed file first."""
        changed = await self._records.changes_of(calls)
        paths = dict.fromkeys(record.change.path for record in reversed(changed))
        return [await self._records.changes_of_path(path) for path in paths]


def _digest(id: str, steps: tuple[Step, ...]) -> str:
    bound = [id, *(step.bound for step in steps)]
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def _bounded(files: Iterable[UndoFile]) -> Iterable[UndoFile]:
    room = DIFFS_MAX
    for file in files:
        if len(file.diff) <= room:
            room -= len(file.diff)
            yield file
        else:
            yield replace(
                file, diff="", says=f"{file.says} Its diff is too long to be shown with the others."
            )
