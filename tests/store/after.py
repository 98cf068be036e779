"""The records once some events, and only these, have happened."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.store.conftest import Kept

from handrail.store.events import Event
from handrail.store.journal import open_journal
from handrail.store.records import Records, open_records


@asynccontextmanager
async def after(kept: Kept, *events: Event) -> AsyncGenerator[Records]:
    async with open_journal(kept.path, kept.head) as journal:
        for event in events:
            journal.append(event)
        await journal.committed(journal.head)
        async with open_records(kept.path) as records:
            yield records
