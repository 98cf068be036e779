"""Plan the undo of one file: compare its recorded history with its present content.

A file is restored only if the undone calls made all its changes since. A change by another call, a command or
a person, between or after them, refuses the file: undoing would lose it. `judge_history` is pure; `step_of` reads the
file and the blobs and renders the diff.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from handrail.gate.tool import Refusal, UndoAction, UndoFile
from handrail.lazy_dataclass import dataclass
from handrail.store.blobs import Blobs, BlobUnavailable
from handrail.store.file_changes import ChangeRecord, UndoRecord
from handrail.store.values import Json
from handrail.tools.files.diff import Diff, unified
from handrail.tools.files.target import Target, look
from handrail.tools.results import printable_line
from handrail.tools.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorState:
    """The state of a file before the calls to be undone."""

    sha: str | None
    """SHA-256 of its content; None when the file did not exist."""
    mode: int | None
    because: str
    """The first call to be undone, by its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoConflict:
    """Why a file cannot be undone."""

    sentence: str
    left: str | None = None
    """SHA-256 of the content after the undone calls, to show the difference."""
    then: str | None = None
    """SHA-256 of the content before them."""


def include_undos(selected: Collection[str], undos: Iterable[UndoRecord]) -> set[str]:
    """Add the undos that reverted only selected calls; `undos` oldest first."""
    calls = set(selected)
    for undo in undos:
        if calls.issuperset(undo.calls):
            calls.add(undo.id)
    return calls


def judge_history(
    history: list[ChangeRecord], selected: Collection[str], now: str | None
) -> PriorState | UndoConflict:
    """Decide on one file. `history` is all its changes, oldest first, at least one of them selected."""
    ours = [record for record in history if record.call in selected]
    running = next((record for record in ours if record.title is not None and record.ending is None), None)
    if running is not None:
        return UndoConflict(sentence=f"{_name_change(running)} is still at it. Undo when that has ended.")
    return _judge_selected(history, ours, now)


def _judge_selected(
    history: list[ChangeRecord], ours: list[ChangeRecord], now: str | None
) -> PriorState | UndoConflict:
    first = ours[0].change
    prior = PriorState(sha=first.before, mode=first.mode, because=_name_change(ours[0]))
    problem = _find_conflict(history, ours, now)
    if problem is None:
        return prior
    if now == prior.sha:  # restored by another writer: its mode is theirs to choose
        return replace(prior, mode=None)
    if len(ours) > 1 and not _is_surely_written(ours[0]):  # it may never have happened: judge the others
        return _judge_selected(history, ours[1:], now)
    return replace(problem, then=prior.sha)


def _find_conflict(
    history: list[ChangeRecord], ours: list[ChangeRecord], now: str | None
) -> UndoConflict | None:
    """The first foreign change between the selected changes, or after them."""
    possible, last = {ours[0].change.before}, ours[0]
    for record in ours:
        if record.change.before not in possible:
            between = [other for other in history if last.seq < other.seq < record.seq]
            return _describe_conflict(between, ours, last, record.change.before)
        possible, last = _possible_hashes(record), record
    after = [other for other in history if other.seq > last.seq]
    return None if now in possible else _describe_conflict(after, ours, last, now)


def _possible_hashes(record: ChangeRecord) -> set[str | None]:
    """Hashes the file may have after a change."""
    change = record.change
    return {change.after} if _is_surely_written(record) else {change.before, change.after}


def _is_surely_written(record: ChangeRecord) -> bool:
    """Changes are recorded before they are made; only a call that ended as done has surely made them."""
    return record.ending == "done"


def _describe_conflict(
    since: list[ChangeRecord], ours: list[ChangeRecord], last: ChangeRecord, holds: str | None
) -> UndoConflict:
    others = [
        record
        for record in since
        if record not in ours
        and (record.ending == "done" or record.title is None or record.change.after == holds)
    ]
    became = "was deleted" if holds is None else "was changed"
    by = f"by {_name_change(others[-1])}" if others else "by hand or by a command"
    more = " Undo that first." if others else ""
    return UndoConflict(
        sentence=f"It {became} since, {by}, and that would be lost.{more}", left=last.change.after
    )


def _name_change(record: ChangeRecord) -> str:
    if record.title is None:
        at = datetime.fromtimestamp(record.at / 1000, UTC)
        return f"the undo {record.call} of {at:%Y-%m-%d %H:%M} UTC"
    return f"call {record.call} ({printable_line(record.title)})"


_NO_DIFF = Diff(text="", added=0, removed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The undo of one file; hashes instead of contents, since there may be thousands of files."""

    file: UndoFile
    now: str | None = None
    """SHA-256 of the present content; None when missing or unreadable."""
    now_mode: int | None = None
    then: str | None = None
    """SHA-256 of the content to restore; None to remove the file."""
    then_mode: int | None = None
    made: tuple[str, ...] = ()
    """Folders that the undone calls created for it."""

    @property
    def acts(self) -> bool:
        return self.file.does in ("restore", "remove", "recreate")

    @property
    def bound(self) -> Json:
        """Facts that must still hold when the undo runs."""
        return {
            "path": self.file.path,
            "does": self.file.does,
            "now": [self.now, self.now_mode],
            "then": [self.then, self.then_mode],
        }


def step_of(
    history: list[ChangeRecord], selected: Collection[str], blobs: Blobs, own: Sequence[Path]
) -> Step:
    """Plan the undo of the file that `history` is about."""
    path = history[0].change.path
    try:
        target = target_of(path, own)
    except Refusal as refusal:
        return Step(file=UndoFile(path=path, does="refuse", says=refusal.sentence))
    now = sha_of(target.before)
    recorded = (folder for record in history if record.call in selected for folder in record.change.made)
    made = tuple(folder for folder in recorded if path.startswith(f"{folder}/"))  # parents of the file only
    match judge_history(history, selected, now):
        case UndoConflict() as conflict:
            step = _plan_refusal(target, conflict, blobs)
        case PriorState() as prior:
            step = replace(_plan_restore(target, prior, blobs), then=prior.sha, then_mode=prior.mode)
    return replace(step, now=now, now_mode=target.mode, made=made)


def target_of(path: str, own: Sequence[Path]) -> Target:
    """Look at exactly this path. Raises Refusal for a symlink on the way or a file that is not plain text."""
    place = Workspace(None, own).place(path)
    if place.path != path or place.linked:
        raise Refusal(f"A symbolic link now leads from {path} to {place.path}. It is not followed.")
    return look(place)


def sha_of(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def _plan_restore(target: Target, prior: PriorState, blobs: Blobs) -> Step:
    path, now = target.place.path, target.before
    if sha_of(now) == prior.sha and not is_other_mode(target.mode, prior.mode):
        return Step(file=UndoFile(path=path, does="nothing", says="It is as it was before already."))
    try:
        then = now if sha_of(now) == prior.sha else None if prior.sha is None else blobs.get(prior.sha)
    except BlobUnavailable as problem:
        return Step(file=UndoFile(path=path, does="refuse", says=f"It cannot come back: {problem}."))
    does: UndoAction = "remove" if prior.sha is None else "recreate" if now is None else "restore"
    return Step(file=_build_file(target, does, _describe_step(target, prior, does), _diff(path, now, then)))


def _describe_step(target: Target, prior: PriorState, does: UndoAction) -> str:
    match does:
        case "remove":
            sentence = f"It goes: it was not there before {prior.because}."
        case "recreate":
            sentence = f"It comes back, with mode {_octal(prior.mode)}, as it was before {prior.because}."
        case _:
            sentence = _describe_restore(target, prior)
    return sentence + (" It is a protected place." if target.place.protected else "")


def _describe_restore(target: Target, prior: PriorState) -> str:
    content = (
        f"It gets back what it held before {prior.because}." if sha_of(target.before) != prior.sha else ""
    )
    modes = f"Its mode goes back from {_octal(target.mode)} to {_octal(prior.mode)}."
    return " ".join(filter(None, [content, modes if is_other_mode(target.mode, prior.mode) else ""]))


def _octal(mode: int | None) -> str:
    return "600" if mode is None else f"{mode & 0o777:o}"


def _plan_refusal(target: Target, conflict: UndoConflict, blobs: Blobs) -> Step:
    """Refuse with a diff: the foreign change, or all that undoing would change if the blob is gone."""
    path, now = target.place.path, target.before
    left, then = _read_blob(conflict.left, blobs), _read_blob(conflict.then, blobs)
    if left is not None:
        diff, shows = _diff(path, left, now), " The diff is what was changed since."
    elif then is not None and now is not None:
        diff, shows = _diff(path, now, then), " Undoing would also discard those later edits."
    else:
        diff, shows = _NO_DIFF, ""
    return Step(file=_build_file(target, "refuse", conflict.sentence + shows, diff))


def _read_blob(sha: str | None, blobs: Blobs) -> bytes | None:
    try:
        return None if sha is None else blobs.get(sha)
    except BlobUnavailable:
        return None


def _diff(path: str, before: bytes | None, after: bytes | None) -> Diff:
    return unified(path.lstrip("/"), before, after)


def _build_file(target: Target, does: UndoAction, says: str, diff: Diff) -> UndoFile:
    return UndoFile(
        path=target.place.path,
        does=does,
        says=says,
        diff=diff.text,
        added=diff.added,
        removed=diff.removed,
    )


MODE_BITS = 0o777
"""Mode bits that are restored; an undo never makes a file set-user-id."""


def is_other_mode(now: int | None, then: int | None) -> bool:
    return None not in (now, then) and (now or 0) & MODE_BITS != (then or 0) & MODE_BITS
