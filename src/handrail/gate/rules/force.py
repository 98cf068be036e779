"""Whether a rule holds in a folder at a moment.

Owns what trust, expiry and scope do to a rule. It does not know what the rule is about (matching.py).
"""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import Rule

Origin = Literal["answer", "config", "project"]
"""Made by a person for good or for a session; in their config.toml; or in a project's own file."""
UNTRUSTED = "This folder is not trusted, so whatever acts in it asks."
CHANGED = "The project's file is not the one that was trusted, so what it allows does not hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A rule and where it came from."""

    rule: Rule
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A folder at a moment."""

    root: str | None
    """Its real path; None where there is none."""
    trusted: bool
    file_trusted: bool
    """The folder is trusted, and its file is the very one that a person saw then."""
    now: int
    """Milliseconds since 1970."""


def lapse(rule: Rule, origin: Origin, here: Here) -> str:
    """Why a rule does not hold here and now, as a sentence; empty when it does."""
    if rule.expires_at is not None and rule.expires_at <= here.now:
        return "It expired."
    if rule.workspace is not None and rule.workspace != here.root:
        return f"It holds in {rule.workspace} only."
    if rule.effect != "allow":
        return ""
    if origin == "project":
        return "" if here.file_trusted else CHANGED if here.trusted else UNTRUSTED
    # What a person made for this very folder needs no trust in it.
    return "" if here.trusted or rule.workspace is not None else UNTRUSTED
