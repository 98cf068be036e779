"""Standing answers, and the folders in which they hold."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAdded:
    """A standing answer holds from now on."""

    kind: Literal["RuleAdded"] = "RuleAdded"
    rule: Rule
    by: str
    approval: str | None = None
    """The question it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRemoved:
    """A standing answer holds no longer."""

    kind: Literal["RuleRemoved"] = "RuleRemoved"
    rule: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrusted:
    """Rules that are not about this very folder hold in it too, and its own file may allow things."""

    kind: Literal["FolderTrusted"] = "FolderTrusted"
    folder: str
    config: str | None
    """SHA-256 of its `.handrail/config.toml` as the person saw it; another content is not trusted."""
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDistrusted:
    """Whatever acts in this folder asks again."""

    kind: Literal["FolderDistrusted"] = "FolderDistrusted"
    folder: str
    by: str
