"""Giving a new file what the old one wore: owner, mode, extended attributes.

Owns only that, and what a mode becomes when a file is made executable or is so no longer. Owner and attributes are
kept where this user may; the mode always.
"""

import errno
import os
import stat
import sys


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


def with_execution(mode: int, executable: bool) -> int:
    """The mode of a file that whoever may read it may also execute; or that nobody may."""
    plain = stat.S_IMODE(mode) & 0o777
    return plain | (plain & 0o444) >> 2 if executable else plain & ~0o111


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
