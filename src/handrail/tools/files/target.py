"""A file to be written: what is there now, and the folder it lies in.

Owns reading the pre-image and saying why a file cannot be edited. It changes nothing (replace.py), and does
not know what will be written.
"""

import os
import stat
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from handrail.gate.tool import Refusal
from handrail.tools.beneath import open_beneath
from handrail.tools.files.lines import is_binary
from handrail.tools.place import Place, kind_of, replaced

SIZE_MAX = 10 << 20
"""Bytes of a file that is edited: old, new and the diff between them are held in memory while a person looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder, held by identity."""

    path: str
    dev: int
    inode: int

    def open(self, place: Place) -> int:
        """A descriptor of this very folder; `place` is what the refusal speaks of."""
        try:
            descriptor = open_beneath("/", self.path.lstrip("/") or ".", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            raise Refusal(replaced(place)) from None
        now = os.fstat(descriptor)
        if (now.st_dev, now.st_ino) != (self.dev, self.inode):
            os.close(descriptor)
            raise Refusal(replaced(place))
        return descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A place to write, its folder, and its content when it was planned."""

    place: Place
    folder: Folder
    """The nearest folder that exists."""
    missing: tuple[str, ...]
    """Folders to be made below it."""
    before: bytes | None
    """None when there is no file yet."""

    @property
    def name(self) -> str:
        return Path(self.place.path).name

    @property
    def mode(self) -> int | None:
        """Of the file that is there."""
        return None if self.place.found is None else stat.S_IMODE(self.place.found.st_mode)

    @property
    def made(self) -> tuple[str, ...]:
        """The paths of the folders to be made, outermost first."""
        paths = accumulate(
            self.missing, lambda path, name: f"{path}/{name}", initial=self.folder.path.rstrip("/")
        )
        return tuple(paths)[1:]


def look(place: Place) -> Target:
    """What a write to this place would meet. Raises Refusal."""
    folder, missing = _folder(place)
    before = None if place.found is None else _before(place, place.found)
    return Target(place=place, folder=folder, missing=missing, before=before)


def _folder(place: Place) -> tuple[Folder, tuple[str, ...]]:
    missing: list[str] = []
    for path in Path(place.path).parents:
        try:
            found = path.stat(follow_symlinks=False)
        except FileNotFoundError:
            missing.append(path.name)
            continue
        except OSError:
            break
        if kind_of(found.st_mode) != "directory":
            raise Refusal(f"{place.shown} cannot be: {path} is a {kind_of(found.st_mode)}, not a directory.")
        if not os.access(path, os.W_OK | os.X_OK):
            break
        return Folder(path=str(path), dev=found.st_dev, inode=found.st_ino), tuple(reversed(missing))
    raise Refusal(f"The system does not let this user write {place.shown}: its directory is closed to them.")


def _before(place: Place, found: os.stat_result) -> bytes:
    if found.st_size > SIZE_MAX:
        raise Refusal(
            f"{place.shown} is too large to edit here ({found.st_size:,} bytes; {SIZE_MAX:,} at most). "
            "Use execute_command with a tool such as sed."
        )
    descriptor = place.open_file()
    try:
        content = read_all(descriptor)
    except OSError as error:
        raise Refusal(f"{place.shown} cannot be read: {error.strerror}.") from None
    finally:
        os.close(descriptor)
    if is_binary(content):
        raise Refusal(
            f"{place.shown} is a binary file, not text, so it cannot be edited here. Use execute_command."
        )
    if not found.st_mode & 0o222 or not os.access(place.path, os.W_OK):
        raise Refusal(f"{place.shown} is read-only. Make it writable first, if it should change.")
    return content


def read_all(descriptor: int) -> bytes:
    """What an open file holds, up to one byte more than may be edited."""
    chunks: list[bytes] = []
    room = SIZE_MAX + 1
    while room > 0 and (chunk := os.read(descriptor, min(room, 1 << 20))):
        chunks.append(chunk)
        room -= len(chunk)
    return b"".join(chunks)
