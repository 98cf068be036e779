"""Open a resolved path without following symbolic links.

Uses `openat2` where the kernel has it, and otherwise opens each component with O_NOFOLLOW. The caller
resolves the path first. A symlink found here was created after that, so it is an error.
"""

import ctypes
import errno
import os
import sys
from functools import cache

_SYS_OPENAT2 = 437  # the same number on every Linux architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_NO_LINKS = _NO_MAGICLINKS | _NO_SYMLINKS
_AT_FDCWD = -100
_INTERRUPTIONS_MAX = 8
"""`openat2` returns EAGAIN while the path is being renamed; this bounds the retries."""

LOOK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
"""Open flags for holding a directory without reading it."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: str, rest: str, flags: int) -> int:
    """Open `rest` (relative, no `..`) below `root`; a symbolic link in either raises OSError."""
    if has_openat2() and ".." not in rest.split("/"):
        return _openat2(_AT_FDCWD, f"{root}/{rest}", flags | os.O_CLOEXEC | os.O_NOFOLLOW, _NO_LINKS)
    top = _openat("/", root.lstrip("/") or ".", LOOK | os.O_DIRECTORY)
    try:
        return openat(top, rest, flags)
    finally:
        os.close(top)


def stat_real(path: str) -> os.stat_result | None:
    """The status of a file if `path` is its real path, absolute and without symbolic links; None if unknown."""
    if (
        not has_openat2()
        or not path.startswith("/")
        or path.startswith("//")
        or os.path.normpath(path) != path
    ):
        return None
    try:
        descriptor = _openat2(_AT_FDCWD, path, LOOK, _NO_LINKS)
    except (OSError, ValueError):
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def openat(folder: int, rest: str, flags: int) -> int:
    """Open `rest` below an open folder without following links."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    return _openat2(folder, rest, flags) if has_openat2() else walk(folder, rest, flags)


def _openat(root: str, rest: str, flags: int) -> int:
    top = os.open(root, LOOK | os.O_DIRECTORY)
    try:
        return openat(top, rest, flags)
    finally:
        os.close(top)


def walk(folder: int, rest: str, flags: int) -> int:
    """Fallback for `openat2`: open one component at a time; a symbolic link raises OSError."""
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise OSError(errno.EXDEV, "leaves the folder", rest)
    held = os.dup(folder)
    try:
        for part in parts[:-1]:
            below = os.open(part, LOOK | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = below
        descriptor = os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW, dir_fd=held)
    finally:
        os.close(held)
    return descriptor


@cache
def has_openat2() -> bool:
    if sys.platform != "linux":
        return False
    top = os.open("/", LOOK | os.O_DIRECTORY)
    try:
        os.close(_openat2(top, ".", LOOK | os.O_DIRECTORY))
    except OSError:
        return False  # an old kernel, or a seccomp filter that rejects the call
    finally:
        os.close(top)
    return True


def _openat2(folder: int, rest: str, flags: int, resolve: int = _BENEATH | _NO_LINKS) -> int:
    how = _OpenHow(flags, 0, resolve)
    code = errno.EAGAIN
    for _ in range(_INTERRUPTIONS_MAX):
        descriptor = _libc().syscall(
            _SYS_OPENAT2, folder, os.fsencode(rest), ctypes.byref(how), ctypes.sizeof(how)
        )
        if descriptor >= 0:
            return int(descriptor)
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), rest)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
