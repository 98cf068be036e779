"""Events of editors that a person paired with Handrail. Pairings end with the editor, so there is no table of them."""

from typing import Literal

from handrail.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorPaired:
    """A person lets an editor decide, as long as its process runs."""

    kind: Literal["EditorPaired"] = "EditorPaired"
    editor: str
    pid: int
    program: str
    workspace: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorRefused:
    """A person refused to pair an editor. It may watch."""

    kind: Literal["EditorRefused"] = "EditorRefused"
    editor: str
    pid: int
    program: str
    workspace: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorRevoked:
    """A person took a pairing back. The editor may watch."""

    kind: Literal["EditorRevoked"] = "EditorRevoked"
    editor: str
    by: str
