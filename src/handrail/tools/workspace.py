"""The workspace: where a caller's paths lead.

Owns resolving a path, once. It does not decide whether a place may be touched (gate/), and does not open
what it finds (place.py).
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from handrail.gate.tool import Refusal
from handrail.store.value import Caller
from handrail.tools.place import Place, below
from handrail.tools.protected import is_protected

_PATH_MAX, _NAME_MAX = 4096, 255
"""Bytes; file systems take no more, and nobody could read more in an approval."""

_KERNEL = ("/proc", "/sys")
"""Read by Handrail, these would tell of Handrail's own process instead of the agent's."""


class Workspace:
    """The folder a caller's paths are relative to, or none."""

    def __init__(self, root: str | None, own: Sequence[Path] = ()) -> None:
        """`own` are Handrail's own files and folders, which are always protected."""
        self.root = os.path.realpath(root) if root is not None else None
        self._own = tuple(own)

    @classmethod
    def of(cls, caller: Caller, own: Sequence[Path]) -> "Workspace":
        return cls(caller.workspace, own)

    def place(self, path: str) -> Place:
        """Resolve a path. A place outside is not an error: it is a claim that asks."""
        asked = self._absolute(_checked(path))
        real = os.path.realpath(asked)
        if any(_is_beneath(real, kernel) for kernel in _KERNEL):
            raise Refusal(
                f"{path} is the kernel's, not a file. Read it with execute_command, in your own process."
            )
        found = _look(real)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise Refusal(f"{path} is a symbolic link that leads back to itself. Name the file it should be.")
        inside = self.root is not None and _is_beneath(real, self.root)
        return Place(
            path=real,
            root=self.root if inside and self.root is not None else "/",
            shown=below(self.root, real) if inside and self.root is not None else real,
            inside=inside,
            protected=self.protects(real),
            linked=real != os.path.normpath(asked),
            found=found,
        )

    def protects(self, path: str) -> bool:
        return is_protected(path, self._own)

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


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _is_beneath(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
