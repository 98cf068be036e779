"""A project's own `.handrail/config.toml`, as a person sees it before they trust it.

Owns reading it once, so that what is shown is what is hashed, and what of it loosens. Whether its rules make sense is
the daemon's to say.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.cli.exact import flat
from handrail.cli.failure import Failure

if TYPE_CHECKING:
    from handrail.config import ProjectConfig, RuleSection

FILE = ".handrail/config.toml"
LARGEST = 256 * 1024
"""Bytes: more than the daemon reads of such a file."""
_ABOUT = ("tool", "pattern", "command", "path", "host", "server", "agent")
_DEFAULTS = {
    "allow": "allow whatever no rule is about, but for high risk (default_policy = allow)",
    "ask": "ask about what no rule is about, also where your own default refuses it (default_policy = ask)",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """The file as it was read."""

    sha: str
    config: ProjectConfig


def seen(folder: Path) -> Seen | None:
    """The folder's own file, read once: what is shown is what is trusted. Raises Failure."""
    from handrail.config import BadConfig, load_project  # noqa: PLC0415 - pydantic, which most commands do without

    path = folder / FILE
    try:
        raw = _bytes(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(
            f"{path} cannot be read: {error.strerror}. Make it a plain file, or remove it."
        ) from None
    if len(raw) > LARGEST:
        raise Failure(f"{path} is larger than {LARGEST:,} bytes. Make it smaller, or remove it.")
    try:
        return Seen(hashlib.sha256(raw).hexdigest(), load_project(path, raw.decode()))
    except (BadConfig, UnicodeDecodeError) as problem:
        raise Failure(f"{folder} cannot be trusted while its file is wrong: {problem}") from None


def _bytes(path: Path) -> bytes:
    """By no link of its own: the daemon follows none either."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        return opened.read(LARGEST + 1)


def loosens(config: ProjectConfig) -> list[str]:
    """What the file allows, each with its line."""
    settings = [
        *([_DEFAULTS[config.default_policy]] if config.default_policy in _DEFAULTS else []),
        *(["allow low risk (human_in_the_loop = false)"] if config.human_in_the_loop is False else []),
    ]
    return [*settings, *(_allowed(rule) for rule in config.rules if rule.effect == "allow")]


def _allowed(rule: RuleSection) -> str:
    told = [f"{name} {getattr(rule, name)}" for name in _ABOUT if getattr(rule, name) is not None]
    until = f", until {rule.expires}" if rule.expires else ""
    said = f"   ({rule.note})" if rule.note else ""
    return flat(f"allow {', '.join(told)}{until}{said}   (line {rule.line})")
