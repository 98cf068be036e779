"""Exceptions that cross packages. Each holds its data and builds its own message. Standard library only."""

from __future__ import annotations


class Unwritable(Exception):
    """The journal cannot be written, so a call that needs a journal entry must not run."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The journal could not be written ({reason}), so nothing was run. "
            "Free space or make the database writable, then try again; `handrail doctor` says more."
        )


class NewerSchema(Exception):
    """The database was written by a later version of Handrail."""

    def __init__(self, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"The database has schema {found}, but this version of Handrail knows only up to {known}. "
            "Upgrade Handrail, or point HANDRAIL_HOME at another home."
        )


class LostJournal(Exception):
    """The database has no event, but the head file names one: the database was emptied or replaced."""

    def __init__(self, path: str, head: str, seq: int) -> None:
        super().__init__(
            f"{path} is empty, but the journal had {seq} events: {head} names the last one. A power cut, a full disk or "
            "another program may have emptied it, so Handrail does not start. Put a backup in its place (see "
            f"`handrail doctor --backup`), or move {head} away to begin with an empty journal."
        )


class BadRecord(Exception):
    """A row of the database cannot be read; the message names the row and the remedy."""

    def __init__(self, table: str, row: str, why: str) -> None:
        super().__init__(
            f"The database has a row in `{table}` that cannot be read ({row}: {why}). Another program changed it, or the "
            "disk is damaged. Put a backup of the database in its place; `handrail doctor` checks the journal."
        )


class Conflict(Exception):
    """Another actor was first, or the person's view is out of date; the message gives the reason."""
