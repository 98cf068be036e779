"""The journal's health: the chain of hashes, its head, and a copy on request.

Does not know what is in it; the walk along the chain is the store's.
"""

import sqlite3
from pathlib import Path

from handrail.doctor.finding import Finding
from handrail.places import Places
from handrail.store.backup import backup
from handrail.store.verify import verify

COPY = "Keep a copy with `handrail doctor --backup FILE`, then find out who wrote to the database."


def check_journal(places: Places) -> Finding:
    """Whether the record is as it was written."""
    if not places.database.exists():
        if places.head.exists():
            says = f"{places.database} is gone, though it was there: {places.head.name} still names its last event."
            return Finding(name="journal", level="bad", says=says, fix="Put a backup in its place.")
        return Finding(name="journal", level="ok", says="There is none yet: nothing has happened.")
    verdict = verify(places.database, places.head)
    return Finding(
        name="journal",
        level="ok" if verdict.ok else "bad",
        says=str(verdict),
        fix=None if verdict.ok else COPY,
    )


def back_up(places: Places, target: Path) -> Finding:
    """Copy the database to a new file, also while a daemon writes."""
    if not places.database.exists():
        return _failed(
            f"there is no database at {places.database} yet", "Start Handrail once: `handrail up`."
        )
    try:
        verdict = backup(places.database, target)
    except FileExistsError as error:
        return _failed(str(error).rstrip("."), None)
    except (OSError, sqlite3.Error) as error:
        return _failed(
            f"{target} could not be written ({error})", "Name a file in a folder that you may write."
        )
    says = f"{verdict.rows} events are in {target}."
    if not verdict.ok:
        says += f" {verdict}"
    return Finding(name="backup", level="ok" if verdict.ok else "bad", says=says)


def _failed(why: str, fix: str | None) -> Finding:
    return Finding(name="backup", level="bad", says=f"No copy was made: {why}.", fix=fix)
