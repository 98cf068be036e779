"""Putting new content in a file's place, whole or not at all.

Owns the steps on disk: new folders, a temporary file beside the target, the last look at the pre-image, the
rename, and the syncs that make it last. It does not know what changes or why.
"""

import errno
import os
import secrets
import stat
from contextlib import suppress

from handrail.gate.tool import Refusal
from handrail.tools.beneath import openat
from handrail.tools.diff import unified
from handrail.tools.dress import dress
from handrail.tools.place import replaced
from handrail.tools.target import Target, read_all

_SHORT_DIFF = 40
"""Lines of difference shown to a model whose edit came too late."""


def replace_file(target: Target, after: bytes) -> None:
    """Write `after` where `target.before` still stands. Raises Refusal; then nothing has changed."""
    folder = target.folder.open(target.place)
    try:
        _write_below(folder, target, after)
    except OSError as error:
        raise Refusal(_failed(error, target)) from None
    finally:
        os.close(folder)


def _failed(error: OSError, target: Target) -> str:
    if error.errno in (errno.EEXIST, errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
        return replaced(target.place)
    return f"{target.place.shown} could not be written: {error.strerror}. It is as it was before."


def _write_below(folder: int, target: Target, after: bytes) -> None:
    """Make the missing folders, one by one, and take them away again when the write fails."""
    if not target.missing:
        _write_in(folder, target, after)
        return
    held, made = [folder], list[tuple[int, str]]()
    try:
        for name in target.missing:
            os.mkdir(name, dir_fd=held[-1])
            made.append((held[-1], name))
            held.append(openat(held[-1], name, os.O_RDONLY | os.O_DIRECTORY))
        _write_in(held[-1], target, after)
        for descriptor in held[:-1]:
            os.fsync(descriptor)
    except BaseException:
        for parent, name in reversed(made):
            _try_rmdir(parent, name)
        raise
    finally:
        for descriptor in held[1:]:
            os.close(descriptor)


def _try_rmdir(parent: int, name: str) -> None:
    with suppress(OSError):  # somebody may use it already
        os.rmdir(name, dir_fd=parent)


def _write_in(folder: int, target: Target, after: bytes) -> None:
    temporary = f".handrail-{secrets.token_hex(8)}"
    try:
        _fill(folder, temporary, target, after)
        _unchanged(folder, target)
        if target.before is None:
            _appear(folder, temporary, target)
        else:
            os.rename(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        _try_unlink(folder, temporary)
    os.fsync(folder)


def _fill(folder: int, temporary: str, target: Target, after: bytes) -> None:
    """The new content in a file of its own, with the mode and owner of the old, on disk."""
    mode = 0o666 if target.before is None else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        rest = memoryview(after)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if target.before is not None:
            dress(descriptor, folder, target.name)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unchanged(folder: int, target: Target) -> None:
    now = _now(folder, target)
    if now == target.before:
        return
    if now is None or target.before is None or not target.place.is_common:
        raise Refusal(replaced(target.place))
    diff = unified(target.place.shown, target.before, now).text.splitlines()
    more = ["…"] if len(diff) > _SHORT_DIFF else []
    raise Refusal("\n".join([f"{replaced(target.place)} It changed like this:", *diff[:_SHORT_DIFF], *more]))


def _now(folder: int, target: Target) -> bytes | None:
    try:
        descriptor = openat(folder, target.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except OSError:
        raise Refusal(replaced(target.place)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(replaced(target.place))
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def _appear(folder: int, temporary: str, target: Target) -> None:
    """Give the file its name, unless somebody took that name meanwhile."""
    try:
        os.link(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise Refusal(replaced(target.place)) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        os.rename(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)  # no hard links here


def _try_unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
