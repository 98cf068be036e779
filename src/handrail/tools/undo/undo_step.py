"""One file of an undo: what is there, what shall be there, and how a person sees the difference.

Owns the look at the file and the words about it. It changes nothing (put_back.py), and does not decide (undoing.py).
All of it blocks: call it in a thread.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from handrail.gate.tool import Does, Refusal, UndoFile
from handrail.store.blobs import Blobs, NotKept
from handrail.store.records import ChangeRecord
from handrail.store.value import Json
from handrail.tools.files.diff import Diff, unified
from handrail.tools.files.target import Target, look
from handrail.tools.undo.put_back import is_other_mode
from handrail.tools.undo.undoing import InTheWay, Wish, judge
from handrail.tools.workspace import Workspace

_NO_DIFF = Diff(text="", added=0, removed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What an undo does to one file, without its contents: there may be thousands of files."""

    file: UndoFile
    now: str | None = None
    """SHA-256 of what it holds, as far as that could be read."""
    now_mode: int | None = None
    then: str | None = None
    """SHA-256 of what it shall hold; None when there shall be no file."""
    then_mode: int | None = None
    made: tuple[str, ...] = ()
    """Folders that the undone calls made for it."""

    @property
    def acts(self) -> bool:
        return self.file.does in ("restore", "remove", "recreate")

    @property
    def bound(self) -> Json:
        """What must be the same when it is done."""
        return {
            "path": self.file.path,
            "does": self.file.does,
            "now": [self.now, self.now_mode],
            "then": [self.then, self.then_mode],
        }


def step_of(
    history: list[ChangeRecord], selected: Collection[str], blobs: Blobs, own: Sequence[Path]
) -> Step:
    """What undoing would do to the file that all of this history is about."""
    path = history[0].change.path
    try:
        target = target_of(path, own)
    except Refusal as refusal:
        return Step(file=UndoFile(path=path, does="refuse", says=refusal.sentence))
    now = sha_of(target.before)
    told = (folder for record in history if record.call in selected for folder in record.change.made)
    made = tuple(folder for folder in told if path.startswith(f"{folder}/"))  # whatever the record says
    match judge(history, selected, now):
        case InTheWay() as refused:
            step = _refused(target, refused, blobs)
        case Wish() as wish:
            step = replace(_wished(target, wish, blobs), then=wish.sha, then_mode=wish.mode)
    return replace(step, now=now, now_mode=target.mode, made=made)


def target_of(path: str, own: Sequence[Path]) -> Target:
    """What is at this very path; a link on the way is a Refusal, as is whatever is no plain text file."""
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
    """With the difference that is in the way; or, where what was left there is not kept, all that undoing would change."""
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
