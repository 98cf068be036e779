"""Questions to the store.

Owns what can be asked, in a module for each noun. Does not know the journal: it sees what is committed, through a
connection of its own. rows.py makes the answers.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from handrail.store.approvals import Approvals
from handrail.store.calls import Calls
from handrail.store.credentials import Credentials
from handrail.store.file_changes import Changes
from handrail.store.operations import Operations
from handrail.store.query import Reader
from handrail.store.rules import Rules
from handrail.store.terminals import Terminals
from handrail.store.threads.queries import Pictures, Places, Threads


@asynccontextmanager
async def open_records(path: Path) -> AsyncGenerator["Records"]:
    """The records in the database at `path`, which a journal must have opened before."""
    records = Records(Reader(path))
    try:
        yield records
    finally:
        records.close()


class Records(
    Calls, Approvals, Terminals, Rules, Changes, Credentials, Threads, Operations, Places, Pictures
):
    """What is known of every noun, newest first unless said otherwise."""

    def close(self) -> None:
        self._reader.close()
