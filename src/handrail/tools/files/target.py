"""The file to be changed: its present content, whether it changed since the plan, and notes.

Notes cover facts that a diff does not show: line endings, mode, encoding, links, new folders. Nothing is
written here.
"""

import os
import stat
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.tools.files.diff import unified
from handrail.tools.files.encoding import BOM, decode, is_crlf, is_mixed, is_utf8
from handrail.tools.files.line_window import is_binary
from handrail.tools.open_beneath import open_beneath, openat
from handrail.tools.results import count_text
from handrail.tools.workspace import Place, describe_replaced, kind_of

SIZE_MAX = 10 << 20
"""Bytes of a file to edit: old and new content and the diff stay in memory until the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder identified by device and inode."""

    path: str
    dev: int
    inode: int

    def open(self, place: Place) -> int:
        """Open this folder; `place` is named in the refusal when it was replaced."""
        try:
            descriptor = open_beneath("/", self.path.lstrip("/") or ".", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            raise Refusal(describe_replaced(place)) from None
        now = os.fstat(descriptor)
        if (now.st_dev, now.st_ino) != (self.dev, self.inode):
            os.close(descriptor)
            raise Refusal(describe_replaced(place))
        return descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file to write, its folder, and its content when the call was planned."""

    place: Place
    folder: Folder
    """The nearest existing parent."""
    missing: tuple[str, ...]
    """Names of the folders to create below it."""
    before: bytes | None
    """None when the file does not exist yet."""

    @property
    def name(self) -> str:
        return Path(self.place.path).name

    @property
    def mode(self) -> int | None:
        """Permission bits of the existing file."""
        return None if self.place.found is None else stat.S_IMODE(self.place.found.st_mode)

    @property
    def made(self) -> tuple[str, ...]:
        """Paths of the folders to create, outermost first."""
        paths = accumulate(
            self.missing, lambda path, name: f"{path}/{name}", initial=self.folder.path.rstrip("/")
        )
        return tuple(paths)[1:]


def look(place: Place) -> Target:
    """Read the present state of the file to write. Raises Refusal when it cannot be edited."""
    folder, missing = _find_folder(place)
    before = None if place.found is None else _read_before(place, place.found)
    return Target(place=place, folder=folder, missing=missing, before=before)


def _find_folder(place: Place) -> tuple[Folder, tuple[str, ...]]:
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


def _read_before(place: Place, found: os.stat_result) -> bytes:
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
    """Read an open file, up to one byte above SIZE_MAX."""
    chunks: list[bytes] = []
    room = SIZE_MAX + 1
    while room > 0 and (chunk := os.read(descriptor, min(room, 1 << 20))):
        chunks.append(chunk)
        room -= len(chunk)
    return b"".join(chunks)


_SHORT_DIFF = 40
"""Lines of diff shown to a model whose edit came too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A difference between the file and its planned content."""

    sentence: str
    diff: str = ""
    """From the planned to the present content; empty when there is nothing to compare."""


def changed_since(target: Target) -> Drift | None:
    """Compare the file with the plan; None when it is unchanged."""
    try:
        folder = target.folder.open(target.place)
    except Refusal as refusal:
        return Drift(sentence=refusal.sentence)
    try:
        name = target.missing[0] if target.missing else target.name
        return compare_content(target, read_present(folder, name, target))
    except Refusal as refusal:
        return Drift(sentence=refusal.sentence)
    finally:
        os.close(folder)


def check_unchanged(folder: int, name: str, target: Target) -> None:
    """Raises Refusal unless the file `name` in an open folder has the planned content."""
    drift = compare_content(target, read_present(folder, name, target))
    if drift is not None:
        raise Refusal(describe_drift(drift, target))


def describe_drift(drift: Drift, target: Target) -> str:
    """Text for a model, with a diff only if the model may read the file."""
    if not drift.diff or not target.place.is_common:
        return drift.sentence
    lines = drift.diff.splitlines()
    more = ["…"] if len(lines) > _SHORT_DIFF else []
    return "\n".join([f"{drift.sentence} It changed like this:", *lines[:_SHORT_DIFF], *more])


def read_present(folder: int, name: str, target: Target) -> bytes | None:
    """Read a file in an open folder; None when it does not exist. Raises Refusal when it is not a file."""
    try:
        descriptor = openat(folder, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except OSError:
        raise Refusal(describe_replaced(target.place)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(describe_replaced(target.place))
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def compare_content(target: Target, now: bytes | None) -> Drift | None:
    if now == target.before:
        return None
    shown = target.place.shown
    if now is None:
        return Drift(
            sentence=f"{shown} was deleted on disk since this change was proposed. Nothing was written. Look what became "
            "of it, then propose again."
        )
    what = "was created" if target.before is None else "changed"
    return Drift(
        sentence=f"{shown} {what} on disk since this change was proposed: another agent or program wrote it. Nothing was "
        "written. Read it again, then propose your change again.",
        diff=unified(shown, target.before, now).text,
    )


def build_notes(target: Target, after: bytes | None, executable: bool | None = None) -> tuple[str, ...]:
    """Notes on a change. `after` None deletes the file; `executable` None keeps the mode."""
    if after == target.before and executable is None:
        return ("Nothing changes: the file has this content already.",)
    content = () if after is None else _content_notes(target.before, after)
    return (*_place_notes(target, after), *_mode_notes(target, after, executable), *content)


def _place_notes(target: Target, after: bytes | None) -> Iterator[str]:
    place, found = target.place, target.place.found
    if after is None:
        yield "Deletes the file."
    if place.linked and after is None:
        yield f"Follows a symbolic link: what is deleted is {place.path}; a link to it leads nowhere then."
    elif place.linked:
        yield f"Follows a symbolic link: what is written is {place.path}."
    if target.made:
        yield f"Creates the directory {target.made[-1]}."
    if found is not None and found.st_nlink > 1:
        yield f"The old content stays under {count_text(found.st_nlink - 1, 'other name')} of the file (hard links)."


def _mode_notes(target: Target, after: bytes | None, executable: bool | None) -> Iterator[str]:
    mode = target.mode
    if after is None:
        return
    if mode is None:
        if executable:
            yield "The new file is executable."
        return
    if executable is not None:
        change = f"mode {mode & 0o777:o} → {mode_with_execution(mode, executable):o}"
        yield (
            f"Makes the file executable ({change})."
            if executable
            else f"The file is executable no longer ({change})."
        )
    elif mode & 0o111:
        yield f"The file is executable and stays so (mode {mode & 0o777:o})."
    if mode & 0o7000:
        yield f"The file loses its special mode bits (mode {mode:o})."


def _content_notes(before: bytes | None, after: bytes) -> Iterator[str]:
    text = decode(after)
    if is_crlf(text):
        kept = before is not None and is_crlf(decode(before))
        yield "Line endings are CRLF, as before." if kept else "Line endings are CRLF."
    elif before is not None and is_crlf(decode(before)):
        yield "Line endings were all CRLF and are no longer."
    if is_mixed(text):
        yield "Line endings are mixed: some LF, some CRLF."
    if text and not text.endswith("\n"):
        yield "No newline ends the file."
    if text.startswith(BOM):
        yield "The file begins with a byte order mark."
    if not is_utf8(after):
        yield "The file is not UTF-8: its other bytes stay as they are, and are shown as \\xNN."


def mode_with_execution(mode: int, executable: bool) -> int:
    """The mode with execution allowed to all who may read, or to none."""
    plain = stat.S_IMODE(mode) & 0o777
    return plain | (plain & 0o444) >> 2 if executable else plain & ~0o111
