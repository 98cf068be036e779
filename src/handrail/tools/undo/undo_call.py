"""Undo file changes by call, operation or thread, and undo an earlier undo.

Order: plan, show the person, save present contents as blobs, write the event to the journal, then restore the
files. Covers files changed by our own tools. Changes made by commands are listed as not covered.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from handrail.errors import Conflict, Unwritable
from handrail.gate.call import new_id
from handrail.gate.tool import Refusal, UndoFile, UndoPlan, UndoSubject, UnknownUndo
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.blobs import Blobs, BlobUnavailable
from handrail.store.calls import CallRecord
from handrail.store.events import FilesRestored
from handrail.store.file_changes import ChangeRecord
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.values import FileChange
from handrail.tools.files.atomic_write import appear, remove_file, replace_file
from handrail.tools.files.target import Target, read_all
from handrail.tools.open_beneath import open_beneath, openat
from handrail.tools.results import count_text, printable_line
from handrail.tools.undo._undo_plan import (
    MODE_BITS,
    Step,
    include_undos,
    is_other_mode,
    sha_of,
    step_of,
    target_of,
)
from handrail.tools.workspace import describe_replaced

_COMMANDS = ("execute_command", "send_to_terminal", "create_tracked_terminal")
"""Tools that run arbitrary programs: their changes to files are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoScope:
    """The calls that an id stands for."""

    id: str
    of: UndoSubject
    title: str
    calls: tuple[str, ...]
    """Or the id of one earlier undo."""
    not_covered: tuple[str, ...]


async def resolve_scope(records: Records, id: str) -> UndoScope:
    """Resolve the id of a call, undo, operation or thread. Raises `UnknownUndo`."""
    call = await records.calls.get(id)
    if call is not None:
        return await _scope_of_calls(records, id, "call", [call.call])
    undo = await records.changes.undo(id)
    if undo is not None:
        title = f"Undo of {', '.join(undo.calls)}"
        return UndoScope(id=id, of="undo", title=printable_line(title), calls=(id,), not_covered=())
    if calls := await records.calls.of_operation(id):
        return await _scope_of_calls(records, id, "operation", calls)
    if calls := await records.calls.of_thread(id):
        return await _scope_of_calls(records, id, "thread", calls)
    raise UnknownUndo(id)


async def _scope_of_calls(
    records: Records, id: str, of: UndoSubject, calls: Sequence[CallRecord]
) -> UndoScope:
    kept = {change.call for change in await records.changes.of_calls(call.id for call in calls)}
    started = [call for call in calls if call.started_at is not None and call.id not in kept]
    return UndoScope(
        id=id,
        of=of,
        title=calls[0].title if of == "call" else f"{count_text(len(calls), 'call')} of {of} {id}",
        calls=tuple(call.id for call in calls if call.id in kept),
        not_covered=tuple([line for call in started for line in await _list_not_covered(records, call)]),
    )


async def _list_not_covered(records: Records, call: CallRecord) -> list[str]:
    """What an undo cannot restore of a call that started and has no recorded changes."""
    if call.tool in _COMMANDS:
        return [f"Whatever this changed: {printable_line(call.title, 200)}"]
    if call.assurance != "bound":
        return [f"Whatever this changed, done by others: {printable_line(call.title, 200)}"]
    if call.tool not in _WRITERS:
        return []
    detail = await records.calls.get(call.id)
    changed = detail.receipt.files_changed if detail and detail.receipt else ()
    return [f"{path}: what it held before call {call.id} was not kept." for path in changed]


_WRITERS = ("write_file", "edit_file", "apply_diff", "rename_symbol")

DIFFS_MAX = 4 << 20
"""Characters of all diffs in one preview; past it a file is listed without its diff."""
SECONDS_MAX = 120.0
"""Bounds a shielded undo on a disk that hangs."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The calls to undo, and the step for each file."""

    what: UndoScope
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
    """Preview and run undos, one at a time."""

    def __init__(self, records: Records, journal: Journal, blobs: Blobs, own: Sequence[Path] = ()) -> None:
        """`own` are Handrail's own files; the preview marks them, and other protected files."""
        self._records = records
        self._journal = journal
        self._blobs = blobs
        self._own = tuple(own)
        self._lock = anyio.Lock()

    async def preview(self, id: str) -> UndoPlan:
        """Plan an undo without doing it. Raises `UnknownUndo`."""
        return (await self._work(id)).plan

    async def undo(self, id: str, digest: str, by: Actor) -> UndoPlan:
        """Run the undo that was previewed; each file reports whether it was restored.

        Raises `UnknownUndo`, `Conflict` when the plan differs from the preview's `digest`, and `Unwritable`.
        """
        async with self._lock:
            work = await self._work(id)
            plan = work.plan
            if plan.digest != digest:
                raise Conflict(
                    "What this undo would do is no longer what you were shown. Look at it again, then decide."
                )
            if not any(step.acts for step in work.steps):
                return plan
            with anyio.fail_after(SECONDS_MAX, shield=True):
                return await self._run(work, plan, by)

    async def _run(self, work: _Work, plan: UndoPlan, by: Actor) -> UndoPlan:
        run = UndoRun(work.steps, self._blobs, self._own)
        changes = await anyio.to_thread.run_sync(run.keep)
        undo = await self._record(work.what.calls, changes, by) if changes else None
        files = await anyio.to_thread.run_sync(run.carry_out)
        return replace(plan, files=tuple(_bounded(files)), undo=undo)

    async def _record(self, calls: tuple[str, ...], changes: tuple[FileChange, ...], by: Actor) -> str:
        undo = new_id("u")
        event = FilesRestored(undo=undo, calls=calls, files=changes, by=str(by))
        await self._journal.committed(self._journal.append(event))
        return undo

    async def _work(self, id: str) -> _Work:
        with suppress(Unwritable):  # an event that could not be written has no effect
            await self._journal.committed(self._journal.head)
        what = await resolve_scope(self._records, id)
        histories = await self._histories(what.calls)
        undos = await self._records.changes.undos(
            {record.call for history in histories for record in history}
        )
        selected = include_undos(what.calls, undos)

        def look() -> tuple[Step, ...]:
            return tuple(step_of(history, selected, self._blobs, self._own) for history in histories)

        return _Work(what, await anyio.to_thread.run_sync(look))

    async def _histories(self, calls: Iterable[str]) -> list[list[ChangeRecord]]:
        """The full history of each file these calls changed; the last changed file first."""
        changed = await self._records.changes.of_calls(calls)
        paths = dict.fromkeys(record.change.path for record in reversed(changed))
        return [await self._records.changes.of_path(path) for path in paths]


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


class UndoRun:
    """Runs the steps of one undo, with one file's contents in memory at a time."""

    def __init__(self, steps: Sequence[Step], blobs: Blobs, own: Sequence[Path]) -> None:
        self._steps = steps
        self._blobs = blobs
        self._own = own
        self._skipped: dict[str, str] = {}
        """Files left unchanged, and why."""

    def keep(self) -> tuple[FileChange, ...]:
        """Save the present contents as blobs; return the changes to be made."""
        kept = [self._keep(step) for step in self._steps if step.acts]
        return tuple(change for change in kept if change is not None)

    def carry_out(self) -> list[UndoFile]:
        """Restore the files; return the result for each."""
        files = [self._restore(step) if step.acts else step.file for step in self._steps]
        gone = [step for step, file in zip(self._steps, files, strict=True) if file.does == "remove"]
        remove_empty_folders(folder for step in gone for folder in step.made)
        return files

    def _keep(self, step: Step) -> FileChange | None:
        path = step.file.path
        try:
            target = self._check_unchanged(step)
            if target.before is not None:
                self._blobs.put(target.before)
        except Refusal as refusal:
            self._skipped[path] = refusal.sentence
        except OSError as error:
            self._skipped[path] = f"What it holds now could not be kept ({error.strerror})."
        else:
            return FileChange(path=path, before=step.now, after=step.then, mode=target.mode, made=target.made)
        return None

    def _restore(self, step: Step) -> UndoFile:
        if step.file.path in self._skipped:
            return _skip_file(step, self._skipped[step.file.path])
        try:
            target = self._check_unchanged(step)
            content = None if step.then is None else self._blobs.get(step.then)
            restore_file(target, content, step.then_mode)
        except (Refusal, BlobUnavailable, OSError) as problem:
            return _skip_file(step, str(problem))
        return replace(step.file, says=_DONE[step.file.does])

    def _check_unchanged(self, step: Step) -> Target:
        """Look at the file again. Raises Refusal when it changed since the plan."""
        target = target_of(step.file.path, self._own)
        if sha_of(target.before) != step.now:
            raise Refusal("It changed at the very moment it was undone. Look again.")
        return target


def _skip_file(step: Step, why: str) -> UndoFile:
    return replace(step.file, does="refuse", says=f"It was left alone. {why}")


_DONE = {
    "restore": "It is as it was before.",
    "remove": "It is gone, as it was before.",
    "recreate": "It is back.",
}


def restore_file(target: Target, content: bytes | None, mode: int | None) -> None:
    """Restore one file; `target` is its present state. Raises Refusal; the file is then unchanged."""
    if content is None:
        remove_file(target)
    elif target.before is None:
        _recreate(target, content, 0o600 if mode is None else mode)
    else:
        if content != target.before:
            replace_file(target, content)
        if mode is not None and is_other_mode(target.mode, mode):
            _set_mode(target, content, mode)


def remove_empty_folders(folders: Iterable[str]) -> None:
    """Remove those of the folders that are empty, deepest first."""
    for folder in sorted(set(folders), key=len, reverse=True):
        with suppress(OSError):  # not empty, already removed, or no longer a folder
            parent = _open_folder(str(Path(folder).parent))
            try:
                os.rmdir(Path(folder).name, dir_fd=parent)
                os.fsync(parent)
            finally:
                os.close(parent)


def _recreate(target: Target, content: bytes, mode: int) -> None:
    folder = target.folder.open(target.place)
    try:
        inner = _make_folders(folder, target.missing)
        try:
            _write_new(inner, target.name, content, mode)
        finally:
            os.close(inner)
    except OSError as error:
        remove_empty_folders(target.made)
        raise Refusal(_describe_failure(error, target)) from None
    finally:
        os.close(folder)


def _make_folders(folder: int, missing: tuple[str, ...]) -> int:
    """Create the missing folders, synced to disk; return a descriptor of the innermost."""
    held = os.dup(folder)
    try:
        for name in missing:
            os.mkdir(name, dir_fd=held)
            os.fsync(held)
            inner = openat(held, name, os.O_RDONLY | os.O_DIRECTORY)
            os.close(held)
            held = inner
    except BaseException:
        os.close(held)
        raise
    return held


def _write_new(folder: int, name: str, content: bytes, mode: int) -> None:
    """Write and sync a temporary file with its mode, then link it to `name`, which must be free."""
    temporary = f".handrail-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode & MODE_BITS)
            os.fsync(descriptor)
        appear(folder, temporary, name)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _set_mode(target: Target, content: bytes, mode: int) -> None:
    """Set the mode, only if the file still holds the restored content."""
    try:
        folder = target.folder.open(target.place)
        try:
            descriptor = openat(folder, target.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        finally:
            os.close(folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or read_all(descriptor) != content:
                raise Refusal(describe_replaced(target.place))
            os.fchmod(descriptor, mode & MODE_BITS)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Refusal(
            f"{target.place.shown} has its content back, but not its mode: {error.strerror}."
        ) from None


def _open_folder(path: str) -> int:
    return open_beneath("/", path.lstrip("/") or ".", os.O_RDONLY | os.O_DIRECTORY)


def _describe_failure(error: OSError, target: Target) -> str:
    if isinstance(error, FileExistsError | FileNotFoundError | NotADirectoryError):
        return describe_replaced(target.place)
    return f"{target.place.shown} could not be written: {error.strerror}. It is as it was before."
