"""A client's configuration file on disk: read as it is, replaced atomically.

Symlinks are followed and stay, the mode and the owner are kept. A file that its owner made read-only is not written, though a
rename would replace it.
"""

import fcntl
import hashlib
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

FILE_MAX = 64 << 20
"""Bytes of a configuration file; bounds memory if something else has its name."""


class FileProblem(Exception):
    """A file cannot be read or written; the message is a sentence with what to do."""


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_bytes(path: Path) -> bytes | None:
    """The content, or None if there is no such file. Raises FileProblem."""
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileProblem(
                    f"{path} is not a regular file. Remove it, or put the file back in its place."
                )
            data = file.read(FILE_MAX + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise FileProblem(
                f"{path} is a symlink that leads nowhere. Remove it, or create its target."
            ) from None
        return None
    except OSError as error:
        raise FileProblem(f"{path} cannot be read: {error.strerror}.") from None
    if len(data) > FILE_MAX:
        raise FileProblem(f"{path} is larger than {FILE_MAX >> 20} MiB, which is no configuration.")
    return data


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would block


def read_text(path: Path) -> str:
    """The content as text, exactly, or an empty text if there is no such file. Raises FileProblem."""
    try:
        return (read_bytes(path) or b"").decode()
    except UnicodeDecodeError:
        raise FileProblem(f"{path} is not UTF-8. Save it as UTF-8, then try again.") from None


def check_writable(path: Path) -> None:
    """Raises FileProblem if the file, or the folder that it would be created in, must not or cannot be written."""
    target = Path(os.path.realpath(path))
    if target.exists():
        status = target.stat()
        if not status.st_mode & stat.S_IWUSR:
            raise FileProblem(
                f"{path} is read-only. Run `chmod u+w {path}` if you want Handrail to change it."
            )
        if os.getuid() not in (0, status.st_uid):
            raise FileProblem(f"{path} belongs to another user.")
    folder = next(each for each in target.parents if each.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileProblem(f"{folder} cannot be written, so {path.name} cannot be replaced or created there.")


def write_bytes(path: Path, data: bytes, mode: int = 0o600) -> list[Path]:
    """Replace or create the file; `mode` is for a new one. Returns the folders that were created. Raises FileProblem."""
    check_writable(path)
    target = Path(os.path.realpath(path))
    created = [each for each in target.parents if not each.exists()]
    fresh = target.with_name(f".{target.name}.handrail-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_beside(fresh, target, data, mode)
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise FileProblem(f"{path} cannot be written: {error.strerror}. It is as it was.") from None
    if read_bytes(path) != data:
        raise FileProblem(f"{path} was changed by another program in the same moment. Try again.")
    return created


def _write_beside(fresh: Path, target: Path, data: bytes, mode: int) -> None:
    status = target.stat() if target.exists() else None
    kept = stat.S_IMODE(status.st_mode) if status else mode
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if status and (status.st_uid, status.st_gid) != (os.getuid(), os.getgid()):
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
        os.fchmod(file.fileno(), kept)


def delete_file(path: Path) -> None:
    """Delete a file that we created. Raises FileProblem."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileProblem(f"{path} cannot be deleted: {error.strerror}.") from None


def delete_folders(folders: Iterable[Path]) -> None:
    """Delete those of the folders that are empty."""
    for folder in sorted({*folders}, key=lambda each: -len(each.parts)):
        try:
            folder.rmdir()
        except OSError:  # not empty, or gone
            continue


@contextmanager
def lock_folder(folder: Path) -> Generator[None]:
    """Keep other Handrails, of any home, from editing files in this folder. A folder that does not exist is not locked."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
