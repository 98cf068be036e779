"""Two names of a folder that change files in one step, and a name that is given only where it is free.

Owns these system calls. It does not know what the files hold, nor why they move.
"""

import ctypes
import errno
import os
import sys
from functools import cache

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
