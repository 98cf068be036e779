"""The hands of one undo: first what is there is kept, then, once that is written down, the files are put back.

Owns these two walks over the files, and what is said of each afterwards. A file that changed since it was looked at is
left alone, and the others go on. It does not journal. All of it blocks: call it in a thread.

Putting a file back as it was: its content, its mode, or its absence.
"""

import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from handrail.gate.tool import Refusal, UndoFile
from handrail.store.blobs import Blobs, NotKept
from handrail.store.values import FileChange
from handrail.tools.files.atomic_write import appear, remove_file, replace_file
from handrail.tools.files.target import Target, read_all
from handrail.tools.open_beneath import open_beneath, openat
from handrail.tools.undo.undo_plan import MODE_BITS, Step, is_other_mode, sha_of, target_of
from handrail.tools.workspace import replaced


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


def put_back(target: Target, content: bytes | None, mode: int | None) -> None:
    """Make the file what it was; `target` is what is there. Raises Refusal; then it is as it is."""
    if content is None:
        remove_file(target)
    elif target.before is None:
        _recreate(target, content, 0o600 if mode is None else mode)
    else:
        if content != target.before:
            replace_file(target, content)
        if mode is not None and is_other_mode(target.mode, mode):
            _set_mode(target, content, mode)


def remove_empty(folders: Iterable[str]) -> None:
    """Those of these folders that are empty go, the deepest first."""
    for folder in sorted(set(folders), key=len, reverse=True):
        with suppress(OSError):  # in use, gone already, or no folder any more
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
        remove_empty(target.made)
        raise Refusal(_failed(error, target)) from None
    finally:
        os.close(folder)


def _make_folders(folder: int, missing: tuple[str, ...]) -> int:
    """A descriptor of the innermost of these folders, once they are all there and on disk."""
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
    """The file with its own mode, on disk, before it gets its name; the name only where it is free."""
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
    """Only of the file that holds what was put back."""
    try:
        folder = target.folder.open(target.place)
        try:
            descriptor = openat(folder, target.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        finally:
            os.close(folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or read_all(descriptor) != content:
                raise Refusal(replaced(target.place))
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


def _failed(error: OSError, target: Target) -> str:
    if isinstance(error, FileExistsError | FileNotFoundError | NotADirectoryError):
        return replaced(target.place)
    return f"{target.place.shown} could not be written: {error.strerror}. It is as it was before."
