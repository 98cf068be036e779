"""Plan the undo of one file: compare its recorded history with its present content.

A file is restored only if the undone calls made all its changes since. A change by another call, a command or
a person, between or after them, refuses the file: undoing would lose it. `judge` is pure; `step_of` reads the
file and the blobs and renders the diff.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from handrail.gate.tool import Does, Refusal, UndoFile
from handrail.store.blobs import Blobs, NotKept
from handrail.store.file_changes import ChangeRecord, UndoRecord
from handrail.store.values import Json
from handrail.tools.files.diff import Diff, unified
from handrail.tools.files.target import Target, look
from handrail.tools.results import brief
from handrail.tools.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The state of a file before the calls to be undone."""

    sha: str | None
    """SHA-256 of its content; None when the file did not exist."""
    mode: int | None
    because: str
    """The first call to be undone, by its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheWay:
    """Why a file cannot be undone."""

    sentence: str
    left: str | None = None
    """SHA-256 of the content after the undone calls, to show the difference."""
    then: str | None = None
    """SHA-256 of the content before them."""


def with_undos(selected: Collection[str], undos: Iterable[UndoRecord]) -> set[str]:
    """Add the undos that reverted only selected calls; `undos` oldest first."""
    found = set(selected)
    for undo in undos:
        if found.issuperset(undo.calls):
            found.add(undo.id)
    return found


def judge(history: list[ChangeRecord], selected: Collection[str], now: str | None) -> Wish | InTheWay:
    """Decide on one file. `history` is all its changes, oldest first, at least one of them selected."""
    ours = [record for record in history if record.call in selected]
    running = next((record for record in ours if record.title is not None and record.ending is None), None)
    if running is not None:
        return InTheWay(sentence=f"{_named(running)} is still at it. Undo when that has ended.")
    return _judged(history, ours, now)


def _judged(history: list[ChangeRecord], ours: list[ChangeRecord], now: str | None) -> Wish | InTheWay:
    first = ours[0].change
    wish = Wish(sha=first.before, mode=first.mode, because=_named(ours[0]))
    problem = _break(history, ours, now)
    if problem is None:
        return wish
    if now == wish.sha:  # restored by another writer: its mode is theirs to choose
        return replace(wish, mode=None)
    if len(ours) > 1 and not _surely_written(ours[0]):  # it may never have happened: judge the others
        return _judged(history, ours[1:], now)
    return replace(problem, then=wish.sha)


def _break(history: list[ChangeRecord], ours: list[ChangeRecord], now: str | None) -> InTheWay | None:
    """The first foreign change between the selected changes, or after them."""
    possible, last = {ours[0].change.before}, ours[0]
    for record in ours:
        if record.change.before not in possible:
            between = [other for other in history if last.seq < other.seq < record.seq]
            return _in_the_way(between, ours, last, record.change.before)
        possible, last = _left(record), record
    after = [other for other in history if other.seq > last.seq]
    return None if now in possible else _in_the_way(after, ours, last, now)


def _left(record: ChangeRecord) -> set[str | None]:
    """Hashes the file may have after a change."""
    change = record.change
    return {change.after} if _surely_written(record) else {change.before, change.after}


def _surely_written(record: ChangeRecord) -> bool:
    """Changes are recorded before they are made; only a call that ended as done has surely made them."""
    return record.ending == "done"


def _in_the_way(
    since: list[ChangeRecord], ours: list[ChangeRecord], last: ChangeRecord, holds: str | None
) -> InTheWay:
    others = [
        record
        for record in since
        if record not in ours
        and (record.ending == "done" or record.title is None or record.change.after == holds)
    ]
    became = "was deleted" if holds is None else "was changed"
    by = f"by {_named(others[-1])}" if others else "by hand or by a command"
    more = " Undo that first." if others else ""
    return InTheWay(
        sentence=f"It {became} since, {by}, and that would be lost.{more}", left=last.change.after
    )


def _named(record: ChangeRecord) -> str:
    if record.title is None:
        at = datetime.fromtimestamp(record.at / 1000, UTC)
        return f"the undo {record.call} of {at:%Y-%m-%d %H:%M} UTC"
    return f"call {record.call} ({brief(record.title)})"


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
    match judge(history, selected, now):
        case InTheWay() as refused:
            step = _refused(target, refused, blobs)
        case Wish() as wish:
            step = replace(_wished(target, wish, blobs), then=wish.sha, then_mode=wish.mode)
    return replace(step, now=now, now_mode=target.mode, made=made)


def target_of(path: str, own: Sequence[Path]) -> Target:
    """Look at exactly this path. Raises Refusal for a symlink on the way or a file that is not plain text."""
    place = Workspace(None, own).place(path)
    if place.path != path or place.linked:
        raise Refusal(f"A symbolic link now leads from {path} to {place.path}. It is not followed.")
    return look(place)


def sha_of(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def _wished(target: Target, wish: Wish, blobs: Blobs) -> Step:
    path, now = target.place.path, target.before
    if sha_of(now) == wish.sha and not is_other_mode(target.mode, wish.mode):
        return Step(file=UndoFile(path=path, does="nothing", says="It is as it was before already."))
    try:
        then = now if sha_of(now) == wish.sha else None if wish.sha is None else blobs.get(wish.sha)
    except NotKept as problem:
        return Step(file=UndoFile(path=path, does="refuse", says=f"It cannot come back: {problem}."))
    does: Does = "remove" if wish.sha is None else "recreate" if now is None else "restore"
    return Step(file=_shown(target, does, _says(target, wish, does), _diff(path, now, then)))


def _says(target: Target, wish: Wish, does: Does) -> str:
    match does:
        case "remove":
            said = f"It goes: it was not there before {wish.because}."
        case "recreate":
            said = f"It comes back, with mode {_octal(wish.mode)}, as it was before {wish.because}."
        case _:
            said = _says_restored(target, wish)
    return said + (" It is a protected place." if target.place.protected else "")


def _says_restored(target: Target, wish: Wish) -> str:
    content = f"It gets back what it held before {wish.because}." if sha_of(target.before) != wish.sha else ""
    modes = f"Its mode goes back from {_octal(target.mode)} to {_octal(wish.mode)}."
    return " ".join(filter(None, [content, modes if is_other_mode(target.mode, wish.mode) else ""]))


def _octal(mode: int | None) -> str:
    return "600" if mode is None else f"{mode & 0o777:o}"


def _refused(target: Target, refused: InTheWay, blobs: Blobs) -> Step:
    """Refuse with a diff: the foreign change, or all that undoing would change if the blob is gone."""
    path, now = target.place.path, target.before
    left, then = _kept(refused.left, blobs), _kept(refused.then, blobs)
    if left is not None:
        diff, shows = _diff(path, left, now), " The diff is what was changed since."
    elif then is not None and now is not None:
        diff, shows = _diff(path, now, then), " The diff is what undoing would change, that included."
    else:
        diff, shows = _NO_DIFF, ""
    return Step(file=_shown(target, "refuse", refused.sentence + shows, diff))


def _kept(sha: str | None, blobs: Blobs) -> bytes | None:
    try:
        return None if sha is None else blobs.get(sha)
    except NotKept:
        return None


def _diff(path: str, before: bytes | None, after: bytes | None) -> Diff:
    return unified(path.lstrip("/"), before, after)


def _shown(target: Target, does: Does, says: str, diff: Diff) -> UndoFile:
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
