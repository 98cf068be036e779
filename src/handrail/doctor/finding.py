"""One thing that was looked at."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    name: str
    level: Level
    says: str
    fix: str | None = None
