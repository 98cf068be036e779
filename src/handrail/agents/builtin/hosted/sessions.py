"""The conversations of this user with this agent: a folder of their own, private, with a file for each.

Owns where they lie and how they are found again. What stands in a file is kept.py's.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from handrail.agents.builtin.hosted.kept import Kept, NoSuchSession, head_of

ID = re.compile(r"[0-9a-z-]{8,64}")
LISTED = 100
"""Conversations in one page of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A conversation, as people find it again."""

    id: str
    cwd: str
    title: str
    updated: datetime


class Sessions:
    """All conversations of this user with this agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self, cwd: str) -> Kept:
        """Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Kept.begun(self._folder / f"{datetime.now(UTC):%Y%m%d}-{token_hex(8)}.jsonl", cwd)

    def open(self, id: str) -> Kept:
        """One from before. Raises NoSuchSession."""
        return Kept.found(self._path(id))

    def delete(self, id: str) -> None:
        """One that is not there is deleted already."""
        with suppress(NoSuchSession):
            self._path(id).unlink(missing_ok=True)

    def listed(self, cwd: str | None, start: int = 0) -> tuple[list[Listed], int | None]:
        """Those in which something was said, of this folder where one is given; the latest first. And where the next page
        starts."""
        found = sorted(self._headed(cwd), key=lambda each: each.updated, reverse=True)
        end = start + LISTED
        return found[start:end], end if end < len(found) else None

    def _headed(self, cwd: str | None) -> Iterator[Listed]:
        for path in self._folder.glob("*.jsonl"):
            try:
                head, changed = head_of(path), path.stat().st_mtime
            except OSError:
                continue  # deleted while we looked
            if head.title and (cwd is None or head.cwd == cwd):
                updated = datetime.fromtimestamp(changed, UTC)
                yield Listed(id=path.stem, cwd=head.cwd, title=head.title, updated=updated)

    def _path(self, id: str) -> Path:
        if not ID.fullmatch(id):
            raise NoSuchSession
        return self._folder / f"{id}.jsonl"
