"""Putting a file back as it was: its content, its mode, or its absence.

Owns what undoing needs on disk beyond writing in a file's place and taking a file away (replace.py): a file that comes
back with the mode it had, and folders that go when nothing is left in them. No link is followed. It does not know why.
"""

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from handrail.gate.tool import Refusal
from handrail.tools.beneath import open_beneath, openat
from handrail.tools.files.exchange import appear
from handrail.tools.files.replace import remove_file, replace_file
from handrail.tools.files.target import Target, read_all
from handrail.tools.place import replaced

_MODE = 0o777
"""Bits that are put back: no file becomes set-user-id by an undo."""


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


def is_other_mode(now: int | None, then: int | None) -> bool:
    return None not in (now, then) and (now or 0) & _MODE != (then or 0) & _MODE


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
            os.fchmod(descriptor, mode & _MODE)
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
            os.fchmod(descriptor, mode & _MODE)
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
