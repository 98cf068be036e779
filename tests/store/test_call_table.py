"""The table of calls: the search language over calls, their inputs and outputs; pages, orders and counts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest
from tests.support.sample_events import (
    JournalFiles,
    approval_allowed,
    approval_opened,
    call_opened,
    call_settled,
    call_started,
)
from tests.support.thread_store import thread_store

from handrail.store import call_table, search_index
from handrail.store.call_table import CallTable
from handrail.store.events import Event
from handrail.store.search_index import open_index
from handrail.store.values import Result

pytestmark = pytest.mark.anyio

STORY: tuple[Event, ...] = (
    call_opened("c1"),
    call_started("c1"),
    replace(call_settled("c1", "failed", "no such folder"), result=Result(text="sacks of flour", data={})),
    call_opened("c2", "execute_command", "codex", "Run make test_mill", {"command": "make test_mill"}),
    approval_opened("a2", "c2"),
    approval_allowed("a2", "c2"),
    call_started("c2"),
    replace(call_settled("c2"), result=Result(text="no module named oats", data={"exit_code": 2})),
    call_opened("c3", "read_file", "codex", "Read 100%_done.txt"),
    replace(call_started("c3"), allowed_by="nobody"),
    call_opened("c4", title="Write c.txt"),
    approval_opened("a4", "c4"),
)


@asynccontextmanager
async def open_table(kept: JournalFiles, *events: Event, texts: bool = True) -> AsyncGenerator[CallTable]:
    async with (
        thread_store(kept) as store,
        open_index(kept.path.with_name("words.db"), store.journal, store.records) as index,
        anyio.create_task_group() as group,
    ):
        group.start_soon(index.run)
        for event in events:
            store.journal.append(event)
        await store.journal.committed(store.journal.head)
        with anyio.fail_after(20):
            await index.wait_indexed(store.journal.head)
        yield CallTable(store.records, index, texts)
        group.cancel_scope.cancel()


async def ids(table: CallTable, q: str, **given: object) -> str:
    return " ".join(call.id for call in (await table.page(q, **given)).calls)  # type: ignore[arg-type]


async def test_a_query_finds_calls_by_fields_words_phrases_and_their_negation(kept: JournalFiles) -> None:
    expected = {
        "": "c4 c3 c2 c1",
        "status:failed": "c2 c1",
        "status:done": "",
        "-status:failed": "c4 c3",
        "status:open": "c4 c3",
        "status:waiting": "c4",
        "status:running": "c3",
        "-status:ended": "c4 c3",
        "status:failed,done": "c2 c1",
        "tool:read": "c3",
        "-tool:write_file": "c3 c2",
        "agent:codex -tool:read_file": "c2",
        "client:CLAUDE": "c4 c1",
        "risk:medium": "c4 c2",
        "-risk:medium": "c3 c1",
        "by:you": "",
        "by:nobody": "c3",
        "asked:nobody": "c3",
        "asked:you": "c4 c2",
        "exit:2": "c2",
        "exit:failed": "c2",
        "-exit:failed": "c4 c3 c1",
        "folder:nowhere": "",
        "since:1h": "c4 c3 c2 c1",
        "before:1h": "",
        "ran:<1h": "c4 c3 c2 c1",
        "id:c1,c3": "c3 c1",
        "flour": "c1",
        "folder": "c1",
        "flour write_file": "c1",
        "test_mill": "c2",
        "mill": "c2",
        "oats": "c2",
        "-oats": "c4 c3 c1",
        '"no module"': "c2",
        '"module no"': "",
        "module no": "c2",
        "in:output oats": "c2",
        "in:input oats": "",
        "in:title make": "c2",
        "%": "c3",
        "0%_d": "c3",
        "codex": "c3 c2",
    }
    async with open_table(kept, *STORY) as table:
        assert {q: await ids(table, q) for q in expected} == expected
        assert await ids(table, "id:" + ",".join(f"c{number}" for number in range(2000))) == "c4 c3 c2 c1"


async def test_pages_keep_their_rows_in_every_order_and_chips_count_each_status(kept: JournalFiles) -> None:
    async with open_table(kept, *STORY) as table:
        first = await table.page(limit=2)
        assert [call.id for call in first.calls] == ["c4", "c3"]
        assert await ids(table, "", upto=first.upto, offset=2) == "c2 c1"
        assert await ids(table, "", upto=first.upto - 2) == "c3 c2 c1"
        assert await ids(table, "", sort="time", ascending=True) == "c1 c2 c3 c4"
        assert await ids(table, "", sort="tool", ascending=True) == "c2 c3 c4 c1"
        assert await ids(table, "", sort="agent") == "c3 c2 c4 c1"
        assert (await ids(table, "", sort="waited")).split()[0] == "c4"
        counts = await table.counts("status:failed")
        assert counts.total == 2
        assert counts.statuses == {"failed": 2, "running": 1, "waiting": 1}
        assert (await table.counts("codex")).statuses == {"failed": 1, "running": 1}


async def test_a_word_that_is_everywhere_is_found_page_by_page_from_the_newest_texts(
    kept: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "APART", 0.0)
    monkeypatch.setattr(call_table, "SOON", 3)
    events = [call_opened(f"c{n}", title=f"Read {n}", input={"path": "everywhere"}) for n in range(10, 20)]
    async with open_table(kept, *events) as table:
        assert await ids(table, "everywhere", limit=2) == "c19 c18"
        assert await ids(table, "everywhere", limit=4) == "c19 c18 c17 c16"
        assert await ids(table, "everywhere", offset=8, limit=4) == "c11 c10"
        assert await ids(table, "-everywhere") == ""


async def test_whoever_may_not_read_contents_cannot_search_them(kept: JournalFiles) -> None:
    async with open_table(kept, *STORY, texts=False) as table:
        assert [await ids(table, q) for q in ("oats", "in:output flour", "make")] == ["", "", "c2"]
