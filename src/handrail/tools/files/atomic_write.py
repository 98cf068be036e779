"""Putting new content in a file's place, or taking the file away: whole or not at all.

Owns the steps on disk: new folders, a temporary file beside the target, the last look at the pre-image, the
exchange of the two, and the syncs that make it last. What was there is looked at once more after it has left its
name, when nobody can put another in its place; what is not as planned goes back. It does not know what changes or why.

Two names of a folder that change files in one step, and a name that is given only where it is free.

Giving a new file what the old one wore: owner, mode, extended attributes.
"""

import ctypes
import errno
import os
import secrets
import stat
import sys
from contextlib import suppress
from functools import cache

from handrail.gate.tool import Refusal
from handrail.tools.files.target import Target, check_unchanged, with_execution
from handrail.tools.open_beneath import openat
from handrail.tools.workspace import replaced

_Identity = tuple[int, int]


def replace_file(target: Target, after: bytes, executable: bool | None = None) -> None:
    """Write `after` where `target.before` still stands. Raises Refusal; then nothing has changed."""
    folder = target.folder.open(target.place)
    try:
        _write_below(folder, target, after, executable)
    except OSError as error:
        raise Refusal(_failed(error, target, "written")) from None
    finally:
        os.close(folder)


def remove_file(target: Target) -> None:
    """Take away the file that still holds `target.before`. Raises Refusal; then it is still there."""
    folder = target.folder.open(target.place)
    try:
        check_unchanged(folder, target.name, target)
        _take_away(folder, _unused_name(), target)
        os.fsync(folder)
    except OSError as error:
        raise Refusal(_failed(error, target, "deleted")) from None
    finally:
        os.close(folder)


def _failed(error: OSError, target: Target, what: str) -> str:
    if error.errno in (errno.EEXIST, errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
        return replaced(target.place)
    return f"{target.place.shown} could not be {what}: {error.strerror}. It is as it was before."


def _write_below(folder: int, target: Target, after: bytes, executable: bool | None) -> None:
    """Make the missing folders, one by one, and take them away again when the write fails."""
    if not target.missing:
        _write_in(folder, target, after, executable)
        return
    held, made = [folder], list[tuple[int, str]]()
    try:
        for name in target.missing:
            os.mkdir(name, dir_fd=held[-1])
            made.append((held[-1], name))
            held.append(openat(held[-1], name, os.O_RDONLY | os.O_DIRECTORY))
        _write_in(held[-1], target, after, executable)
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


def _write_in(folder: int, target: Target, after: bytes, executable: bool | None) -> None:
    temporary = _unused_name()
    try:
        ours = _fill(folder, temporary, target, after, executable)
        check_unchanged(folder, target.name, target)
    except BaseException:
        _try_unlink(folder, temporary)
        raise
    if target.before is None:
        _appear(folder, temporary, target)
    else:
        _change_places(folder, temporary, target, ours)
    os.fsync(folder)


def _unused_name() -> str:
    return f".handrail-{secrets.token_hex(8)}"


def _fill(folder: int, temporary: str, target: Target, after: bytes, executable: bool | None) -> _Identity:
    """The new content in a file of its own, with the mode and owner of the old, on disk."""
    mode = 0o600 if target.before is not None else 0o777 if executable else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        rest = memoryview(after)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if target.before is not None:
            dress(descriptor, folder, target.name)
            if executable is not None:
                os.fchmod(descriptor, with_execution(os.fstat(descriptor).st_mode, executable))
        os.fsync(descriptor)
        return _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


def _appear(folder: int, temporary: str, target: Target) -> None:
    """Give the new file its name, unless somebody took that name meanwhile."""
    try:
        appear(folder, temporary, target.name)
    except BaseException:
        _try_unlink(folder, temporary)
        raise


def _change_places(folder: int, temporary: str, target: Target, ours: _Identity) -> None:
    """Let the new file and the old one change names; then the old one goes, if it is the one that was planned for."""
    try:
        exchanged = exchange(folder, temporary, target.name)
        if not exchanged:  # a file system without that step: whoever writes right now is overwritten
            os.rename(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _try_unlink(folder, temporary)
        raise
    if exchanged:
        _drop_old(folder, temporary, target, ours)


def _drop_old(folder: int, temporary: str, target: Target, ours: _Identity) -> None:
    try:
        check_unchanged(folder, temporary, target)
    except Refusal as refusal:
        _change_back(folder, temporary, target, ours, refusal)
        raise
    os.unlink(temporary, dir_fd=folder)


def _change_back(folder: int, temporary: str, target: Target, ours: _Identity, refusal: Refusal) -> None:
    """Somebody was faster, so theirs stays: nothing but our own file is thrown away."""
    try:
        exchange(folder, temporary, target.name)
        if _identity(os.lstat(temporary, dir_fd=folder)) == ours:
            os.unlink(temporary, dir_fd=folder)
            return
        exchange(folder, temporary, target.name)  # they wrote once more meanwhile, and that is the newest
    except OSError:
        pass
    raise Refusal(_left(refusal, temporary)) from None


def _take_away(folder: int, temporary: str, target: Target) -> None:
    os.rename(target.name, temporary, src_dir_fd=folder, dst_dir_fd=folder)
    try:
        check_unchanged(folder, temporary, target)
    except Refusal as refusal:
        try:
            appear(folder, temporary, target.name)
        except OSError:
            raise Refusal(_left(refusal, temporary)) from None
        raise
    os.unlink(temporary, dir_fd=folder)


def _left(refusal: Refusal, temporary: str) -> str:
    return f"{refusal.sentence}\nWhat stood there for a moment is kept beside it as {temporary}."


def _try_unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


_SWAP = 2
_EXCLUSIVE = 4 if sys.platform == "darwin" else 1
_CALL = "renameatx_np" if sys.platform == "darwin" else "renameat2"
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
"""What systems and file systems say that do not know the call, or the flag."""


def exchange(folder: int, one: str, other: str) -> bool:
    """Let two names change their files; False, with nothing done, where the system has no such step."""
    return _rename(folder, one, other, _SWAP)


def appear(folder: int, temporary: str, name: str) -> None:
    """Give a file its name. Raises FileExistsError when somebody has that name already."""
    if _rename(folder, temporary, name, _EXCLUSIVE):
        return
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (*_CANNOT, errno.EMLINK):
            raise
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)  # no hard links here
    else:
        os.unlink(temporary, dir_fd=folder)


def _rename(folder: int, old: str, new: str, flag: int) -> bool:
    libc = _libc()
    if libc is None:
        return False
    call = getattr(libc, _CALL)
    if call(folder, os.fsencode(old), folder, os.fsencode(new), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), old, None, new)


@cache
def _libc() -> ctypes.CDLL | None:
    """The C library, if it has the call."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, _CALL):
        return None
    getattr(libc, _CALL).argtypes = (
        *(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint),
    )
    return libc


def dress(descriptor: int, folder: int, name: str) -> None:
    """Dress the open new file like the file `name` in an open folder."""
    worn = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        old = os.fstat(worn)
        new = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            _try_chown(descriptor, old)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)
        if sys.platform == "linux":
            _copy_attributes(worn, descriptor)
    finally:
        os.close(worn)


def _try_chown(descriptor: int, old: os.stat_result) -> None:
    for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        try:
            os.fchown(descriptor, *owner)
        except PermissionError:
            continue
        return


def _copy_attributes(worn: int, descriptor: int) -> None:
    try:
        for name in os.listxattr(worn):
            os.setxattr(descriptor, name, os.getxattr(worn, name))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
            raise
