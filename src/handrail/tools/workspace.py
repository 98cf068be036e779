"""Resolve a caller's path to a Place, and open it without following symlinks created since.

A path is resolved once, when the call is planned. The Place remembers device and inode, so that a file
swapped in later is refused. Whether a place may be touched is decided in gate/.
"""

import difflib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Action, Caller, Claim, Json
from handrail.tools.open_beneath import LOOK, open_beneath, stat_real
from handrail.tools.protected_paths import is_obeyed, is_protected, is_repository, is_repository_part

_NEVER_BLOCK = os.O_NONBLOCK | os.O_NOCTTY
_NAMES_MAX = 2000
"""Directory entries compared to suggest a similar name; a folder may hold millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The file, folder or missing path that a caller's path resolved to."""

    path: str
    """The real path: absolute, with all symlinks resolved."""
    root: str
    """The workspace when the place lies inside it, `/` otherwise."""
    shown: str
    """The path shown to a model: relative to the workspace, or absolute."""
    inside: bool
    protected: bool
    obeyed: bool
    """Other programs execute or follow it, so that changing it counts as touching a protected place."""
    linked: bool
    """The caller's path went through a symbolic link."""
    found: os.stat_result | None
    """The stat result at resolution; None when the path did not exist or could not be read."""

    @property
    def is_common(self) -> bool:
        """Whether any caller in this workspace may read it, so that a refusal may quote its content."""
        return self.inside and not self.protected

    @property
    def is_file(self) -> bool:
        return self.found is not None and stat.S_ISREG(self.found.st_mode)

    @property
    def rest(self) -> str:
        return relative_path(self.root, self.path)

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode at resolution."""
        return (self.found.st_dev, self.found.st_ino) if self.found else None

    @property
    def bound(self) -> Json:
        """Facts that must still hold when the call runs."""
        dev, inode = self.identity or (None, None)
        return {"path": self.path, "dev": dev, "inode": inode}

    def claim(self, action: Action) -> Claim:
        protected = self.protected or (self.obeyed and action in ("write", "delete"))
        return Claim(action=action, resource=self.path, inside=self.inside, protected=protected)

    def open_file(self) -> int:
        """Open the file that was resolved, for reading. Raises Refusal when it was replaced since."""
        kind = self._kind()
        if kind != "file":
            raise Refusal(self._is_no_file(kind))
        return self._open(os.O_RDONLY | _NEVER_BLOCK, stat.S_ISREG)

    def open_folder(self) -> int:
        """Open the folder that was resolved, for reading. Raises Refusal when it was replaced since."""
        kind = self._kind()
        if kind != "directory":
            raise Refusal(f"{self.shown} is a {kind}, not a directory. Name the directory it lies in.")
        return self._open(os.O_RDONLY | os.O_DIRECTORY, stat.S_ISDIR)

    def look(self) -> os.stat_result | None:
        """Stat the path again, not following symlinks created since; None when it does not exist."""
        try:
            descriptor = open_beneath(self.root, self.rest, LOOK)
        except OSError:
            return None
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def _kind(self) -> str:
        if self.found is None:
            raise Refusal(describe_missing(self))
        return kind_of(self.found.st_mode)

    def _is_no_file(self, kind: str) -> str:
        if kind == "directory":
            return f"{self.shown} is a directory, not a file. Use list_files to see what is in it."
        return f"{self.shown} is a {kind}, not a file: reading it could wait forever, so it is not opened."

    def _open(self, flags: int, expected: Callable[[int], bool]) -> int:
        try:
            descriptor = open_beneath(self.root, self.rest, flags)
        except OSError as error:
            raise Refusal(describe_open_error(error, self)) from None
        now = os.fstat(descriptor)
        if self.found is None or not os.path.samestat(now, self.found) or not expected(now.st_mode):
            os.close(descriptor)
            raise Refusal(describe_replaced(self))
        return descriptor


def relative_path(root: str, path: str) -> str:
    """The part of a real path below `root`."""
    return path[len(root.rstrip("/")) + 1 :] or "."


def describe_missing(place: Place) -> str:
    where = f" in the workspace {place.root}" if place.inside else ""
    near = _near_names(place) if place.is_common else []
    hint = f"Did you mean {' or '.join(near)}?" if near else "Look with list_files or search_files."
    return f"There is no {place.shown}{where}. {hint}"


def _near_names(place: Place) -> list[str]:
    folder, name = os.path.split(place.path)
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_NAMES_MAX), strict=False)]
    except OSError:
        return []
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    return [str(Path(place.shown).with_name(near)) for near in close]


def describe_replaced(place: Place) -> str:
    return (
        f"{place.shown} is no longer what it was when this call was checked: something replaced it meanwhile. "
        "Nothing was done. Ask again."
    )


def describe_open_error(error: OSError, place: Place) -> str:
    """A sentence for an error from opening a place."""
    match error.errno:
        case errno.ENOENT | errno.ELOOP | errno.ENOTDIR | errno.EXDEV:
            return describe_replaced(place)
        case errno.EACCES | errno.EPERM:
            return f"The system does not let this user open {place.shown} (permission denied)."
        case errno.EMFILE | errno.ENFILE:
            return f"{place.shown} cannot be opened now: too many files are open. Try again later."
        case _:
            return f"{place.shown} cannot be opened: {error.strerror}."


def kind_of(mode: int) -> str:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            return name
    return "special file"


_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)

_PATH_MAX, _NAME_MAX = 4096, 255
"""Bytes; file systems accept no more, and longer paths are unreadable in an approval."""

_KERNEL = ("/proc", "/sys")
"""Here Handrail would read facts about its own process instead of the agent's."""


class Workspace:
    """The folder that a caller's relative paths start from; without one, `root` is None."""

    def __init__(self, root: str | None, own: Sequence[Path] = ()) -> None:
        """`own` are Handrail's own files and folders, which are always protected."""
        self.root = None if root is None else real_path(root)
        self.own = tuple(own)

    @classmethod
    def of(cls, caller: Caller, own: Sequence[Path]) -> "Workspace":
        return cls(caller.workspace, own)

    def place(self, path: str) -> Place:
        """Resolve a path. Outside the workspace is not an error: the claim then needs approval."""
        asked = self._absolute(_checked(path))
        found = stat_real(asked)
        real = os.path.realpath(asked) if found is None else asked
        if any(_is_beneath(real, kernel) for kernel in _KERNEL):
            raise Refusal(
                f"{path} is the kernel's, not a file. Read it with execute_command, in your own process."
            )
        if found is None:
            found = _look(real)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise Refusal(f"{path} is a symbolic link that leads back to itself. Name the file it should be.")
        inside = self.root is not None and _is_beneath(real, self.root)
        return Place(
            path=real,
            root=self.root if inside and self.root is not None else "/",
            shown=relative_path(self.root, real) if inside and self.root is not None else real,
            inside=inside,
            protected=self.protects(real),
            obeyed=is_obeyed(real),
            linked=real != os.path.normpath(asked),
            found=found,
        )

    def protects(self, path: str) -> bool:
        """Whether a real path is protected, by its name or because it belongs to a git directory."""
        return is_protected(path, self.own) or is_repository(path) or is_repository_part(path)

    def _absolute(self, path: str) -> str:
        path = str(Path(path).expanduser()) if path == "~" or path.startswith("~/") else path
        if self.root is None and not path.startswith("/"):
            raise Refusal(
                f"This client has no workspace, so {path} leads nowhere. Give an absolute path, or start "
                "`handrail mcp` inside a project or with --workspace DIR."
            )
        return os.path.join(self.root or "/", path)  # noqa: PTH118 - resolved next, and on every call


def _checked(path: str) -> str:
    if not path.strip():
        raise Refusal("The path is empty. Give the path of a file or directory, such as src/main.py.")
    if "\0" in path:
        raise Refusal("The path holds a NUL character, which no file name can. Remove it.")
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        raise Refusal(
            "The path is not valid text (it cannot be encoded as UTF-8). Check its characters."
        ) from None
    if len(raw) > _PATH_MAX or any(len(part) > _NAME_MAX for part in raw.split(b"/")):
        raise Refusal(
            f"The path is too long: {len(raw)} bytes, where {_PATH_MAX} are possible and {_NAME_MAX} for each name."
        )
    return path


def real_path(path: str) -> str:
    """The path with all symbolic links resolved. One system call if there are none, as for most folders."""
    return os.path.realpath(path) if stat_real(path) is None else path


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _is_beneath(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
