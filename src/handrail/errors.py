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


class Conflict(Exception):
    """Another actor was first, or the person's view is out of date; the message gives the reason."""
