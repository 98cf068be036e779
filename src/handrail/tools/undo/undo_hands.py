"""The hands of one undo: first what is there is kept, then, once that is written down, the files are put back.

Owns these two walks over the files, and what is said of each afterwards. A file that changed since it was looked at is
left alone, and the others go on. It does not journal. All of it blocks: call it in a thread.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from handrail.gate.tool import Refusal, UndoFile
from handrail.store.blobs import Blobs, NotKept
from handrail.store.value import FileChange
from handrail.tools.files.target import Target
from handrail.tools.undo.put_back import put_back, remove_empty
from handrail.tools.undo.undo_step import Step, sha_of, target_of


class Hands:
    """Carries out the steps of one undo, holding one file's contents at a time."""

    def __init__(self, steps: Sequence[Step], blobs: Blobs, own: Sequence[Path]) -> None:
        self._steps = steps
        self._blobs = blobs
        self._own = own
        self._left: dict[str, str] = {}
        """Files that are left alone, and why."""

    def keep(self) -> tuple[FileChange, ...]:
        """Keep what the files hold; returns what will be put in its place."""
        kept = [self._keep(step) for step in self._steps if step.acts]
        return tuple(change for change in kept if change is not None)

    def carry_out(self) -> list[UndoFile]:
        """Put back what can be, and say what became of each file."""
        files = [self._put_back(step) if step.acts else step.file for step in self._steps]
        gone = [step for step, file in zip(self._steps, files, strict=True) if file.does == "remove"]
        remove_empty(folder for step in gone for folder in step.made)
        return files

    def _keep(self, step: Step) -> FileChange | None:
        path = step.file.path
        try:
            target = self._unchanged(step)
            if target.before is not None:
                self._blobs.put(target.before)
        except Refusal as refusal:
            self._left[path] = refusal.sentence
        except OSError as error:
            self._left[path] = f"What it holds now could not be kept ({error.strerror})."
        else:
            return FileChange(path=path, before=step.now, after=step.then, mode=target.mode, made=target.made)
        return None

    def _put_back(self, step: Step) -> UndoFile:
        if step.file.path in self._left:
            return _left_alone(step, self._left[step.file.path])
        try:
            target = self._unchanged(step)
            content = None if step.then is None else self._blobs.get(step.then)
            put_back(target, content, step.then_mode)
        except (Refusal, NotKept, OSError) as problem:
            return _left_alone(step, str(problem))
        return replace(step.file, says=_DONE[step.file.does])

    def _unchanged(self, step: Step) -> Target:
        """What is there, if it is still what was looked at. Raises Refusal."""
        target = target_of(step.file.path, self._own)
        if sha_of(target.before) != step.now:
            raise Refusal("It changed at the very moment it was undone. Look again.")
        return target


def _left_alone(step: Step, why: str) -> UndoFile:
    return replace(step.file, does="refuse", says=f"It was left alone. {why}")


_DONE = {
    "restore": "It is as it was before.",
    "remove": "It is gone, as it was before.",
    "recreate": "It is back.",
}
