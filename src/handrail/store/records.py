"""Records: read access to the database, one attribute per noun. Reads committed data over its own connection."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from handrail.store.approvals import ApprovalQueries
from handrail.store.calls import CallCounts, CallQueries
from handrail.store.credentials import CredentialQueries
from handrail.store.file_changes import ChangeQueries
from handrail.store.operations import OperationQueries
from handrail.store.query import Reader
from handrail.store.rules import RuleQueries
from handrail.store.terminals import TerminalQueries
from handrail.store.threads.queries import ThreadQueries


@asynccontextmanager
async def open_records(path: Path) -> AsyncGenerator["Records"]:
    """Open the records in the database at `path`. A journal must have created the file before."""
    records = Records(Reader(path))
    try:
        yield records
    finally:
        records.close()


class Records:
    """The queries of every noun, over one shared reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._counter = reader.another()
        """For counts over many calls, which must not delay other reads."""
        self.calls = CallQueries(reader)
        self.call_counts = CallCounts(self._counter)
        self.approvals = ApprovalQueries(reader)
        self.terminals = TerminalQueries(reader)
        self.rules = RuleQueries(reader)
        self.changes = ChangeQueries(reader)
        self.credentials = CredentialQueries(reader)
        self.threads = ThreadQueries(reader)
        self.operations = OperationQueries(reader)

    def close(self) -> None:
        self._reader.close()
        self._counter.close()
