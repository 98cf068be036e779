"""What a person took back."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRestored:
    """A person undid what calls did to files; written before the files are."""

    kind: Literal["FilesRestored"] = "FilesRestored"
    undo: str
    calls: tuple[str, ...]
    files: tuple[FileChange, ...]
    by: str
