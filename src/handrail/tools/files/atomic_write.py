"""Replace or delete a file atomically, only if it still has its planned content.

The new content goes to a temporary file beside the target, synced, with owner, mode and xattrs of the old
file. Then the two names are exchanged (renameat2), and the old file is checked once more under its temporary
name, where no other program looks for it. If it is not the planned one, the exchange is reverted.
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
from handrail.tools.files.target import Target, check_unchanged, mode_with_execution
from handrail.tools.open_beneath import openat
from handrail.tools.workspace import describe_replaced

_Identity = tuple[int, int]


def replace_file(target: Target, after: bytes, executable: bool | None = None) -> None:
    """Write `after` if the file still holds `target.before`. Raises Refusal; then nothing has changed."""
    folder = target.folder.open(target.place)
    try:
        _write_below(folder, target, after, executable)
    except OSError as error:
        raise Refusal(_describe_failure(error, target, "written")) from None
    finally:
        os.close(folder)


def remove_file(target: Target) -> None:
    """Delete the file if it still holds `target.before`. Raises Refusal; then the file still exists."""
    folder = target.folder.open(target.place)
    try:
        check_unchanged(folder, target.name, target)
        _move_and_unlink(folder, _unused_name(), target)
        os.fsync(folder)
    except OSError as error:
        raise Refusal(_describe_failure(error, target, "deleted")) from None
    finally:
        os.close(folder)


def _describe_failure(error: OSError, target: Target, what: str) -> str:
    if error.errno in (errno.EEXIST, errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
        return describe_replaced(target.place)
    return f"{target.place.shown} could not be {what}: {error.strerror}. It is as it was before."


def _write_below(folder: int, target: Target, after: bytes, executable: bool | None) -> None:
    """Create the missing folders first; remove them again when the write fails."""
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
    with suppress(OSError):  # another program may use it already
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
        _publish_new(folder, temporary, target)
    else:
        _swap_with_old(folder, temporary, target, ours)
    os.fsync(folder)


def _unused_name() -> str:
    return f".handrail-{secrets.token_hex(8)}"


def _fill(folder: int, temporary: str, target: Target, after: bytes, executable: bool | None) -> _Identity:
    """Write the content to a synced temporary file, with mode and owner of the old file."""
    mode = 0o600 if target.before is not None else 0o777 if executable else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=folder)
    try:
        rest = memoryview(after)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if target.before is not None:
            copy_metadata(descriptor, folder, target.name)
            if executable is not None:
                os.fchmod(descriptor, mode_with_execution(os.fstat(descriptor).st_mode, executable))
        os.fsync(descriptor)
        return _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


def _publish_new(folder: int, temporary: str, target: Target) -> None:
    """Link the temporary file to its final name, which must be free."""
    try:
        appear(folder, temporary, target.name)
    except BaseException:
        _try_unlink(folder, temporary)
        raise


def _swap_with_old(folder: int, temporary: str, target: Target, ours: _Identity) -> None:
    """Exchange the names of the new and the old file, then delete the old one if it is the planned one."""
    try:
        exchanged = exchange(folder, temporary, target.name)
        if not exchanged:  # no exchange on this file system: a concurrent write is lost
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
        _swap_back(folder, temporary, target, ours, refusal)
        raise
    os.unlink(temporary, dir_fd=folder)


def _swap_back(folder: int, temporary: str, target: Target, ours: _Identity, refusal: Refusal) -> None:
    """Revert the exchange after a concurrent write; only our own file is deleted."""
    try:
        exchange(folder, temporary, target.name)
        if _identity(os.lstat(temporary, dir_fd=folder)) == ours:
            os.unlink(temporary, dir_fd=folder)
            return
        exchange(folder, temporary, target.name)  # a second concurrent write: the newest stays
    except OSError:
        pass
    raise Refusal(_describe_leftover(refusal, temporary)) from None


def _move_and_unlink(folder: int, temporary: str, target: Target) -> None:
    os.rename(target.name, temporary, src_dir_fd=folder, dst_dir_fd=folder)
    try:
        check_unchanged(folder, temporary, target)
    except Refusal as refusal:
        try:
            appear(folder, temporary, target.name)
        except OSError:
            raise Refusal(_describe_leftover(refusal, temporary)) from None
        raise
    os.unlink(temporary, dir_fd=folder)


def _describe_leftover(refusal: Refusal, temporary: str) -> str:
    return f"{refusal.sentence}\nWhat stood there for a moment is kept beside it as {temporary}."


def _try_unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


_SWAP = 2
_EXCLUSIVE = 4 if sys.platform == "darwin" else 1
_CALL = "renameatx_np" if sys.platform == "darwin" else "renameat2"
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
"""Errors of systems and file systems that lack the call or the flag."""


def exchange(folder: int, one: str, other: str) -> bool:
    """Exchange two files atomically; False, with nothing done, when unsupported."""
    return _rename(folder, one, other, _SWAP)


def appear(folder: int, temporary: str, name: str) -> None:
    """Rename a file to a free name. Raises FileExistsError when it is taken."""
    if _rename(folder, temporary, name, _EXCLUSIVE):
        return
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (*_CANNOT, errno.EMLINK):
            raise
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)  # no hard links on this file system
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


def copy_metadata(descriptor: int, folder: int, name: str) -> None:
    """Copy owner, mode and xattrs from the file `name` in an open folder to the open new file."""
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        old = os.fstat(source)
        new = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            _try_chown(descriptor, old)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)
        if sys.platform == "linux":
            _copy_attributes(source, descriptor)
    finally:
        os.close(source)


def _try_chown(descriptor: int, old: os.stat_result) -> None:
    for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        try:
            os.fchown(descriptor, *owner)
        except PermissionError:
            continue
        return


def _copy_attributes(source: int, descriptor: int) -> None:
    try:
        for name in os.listxattr(source):
            os.setxattr(descriptor, name, os.getxattr(source, name))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
            raise
