"""The mailbox: what an agent is told of calls it no longer waits for."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import BOUND, build_tool_context

from handrail.gate.call import Call, Outcome
from handrail.paths import Places
from handrail.store.actor import tool_actor
from handrail.store.journal import open_journal
from handrail.store.records import open_records
from handrail.store.values import Caller, Result
from handrail.terminal.keeper_client import Keeper
from handrail.terminal.terminals import Terminals
from handrail.tools import calls
from handrail.tools.calls import (
    GetCall,
    GetCallInput,
    ListCalls,
    ListCallsInput,
    WaitForCall,
    WaitForCallInput,
)

DONE = Outcome(ending="done", by=tool_actor("toy"), result=Result(text="fruit", data={"output": "fruit"}))


async def test_a_wait_ends_before_the_client_gives_up_and_says_so(
    home: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "WAIT_SECONDS", 0.05)
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        open_records(home / "handrail.db") as records,
    ):
        running, asking = (Call.open(journal, "toy", "Toy", {}, caller) for _ in range(2))
        asking.patience = 0.1
        await journal.committed(asking.opened_seq)
        terminals = Terminals(Keeper(Places.under(home)), home / "spool")
        tool = WaitForCall(build_tool_context(terminals, records, home), {running.id: running}, journal)
        plan = await tool.plan(WaitForCallInput(call_id=running.id, wait_seconds=100), caller)
        with anyio.fail_after(BOUND):
            result = await tool.run(plan, asking)
    assert f"{running.id} toy: running." in result.text
    assert "This waited 0.05 s, not 100 s, because your client" in result.text


async def test_waiting_for_a_call_that_has_just_ended_waits_for_its_record(
    home: Path, caller: Caller
) -> None:
    told: list[dict[str, Any]] = []
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        open_records(home / "handrail.db") as records,
        anyio.create_task_group() as group,
    ):
        ended, asking = (Call.open(journal, "toy", "Toy", {}, caller) for _ in range(2))
        await journal.committed(asking.opened_seq)
        terminals = Terminals(Keeper(Places.under(home)), home / "spool")
        tool = WaitForCall(build_tool_context(terminals, records, home), {}, journal)
        plan = await tool.plan(WaitForCallInput(call_id=ended.id), caller)

        async def wait() -> None:
            told.append((await tool.run(plan, asking)).data)

        with closing(sqlite3.connect(home / "handrail.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # so that the outcome cannot reach the disk yet
            ended.settle(DONE)
            group.start_soon(wait)
            with anyio.fail_after(BOUND):
                await records.calls.get(
                    ended.id
                )  # asked after the tool's own look, so that one has ended too
                await anyio.wait_all_tasks_blocked()
            assert told == []
            other.execute("ROLLBACK")

    (answer,) = told
    assert (answer["call"]["status"], answer["call"]["result"]) == ("done", {"output": "fruit"})


async def test_a_mailbox_shows_the_calls_of_its_workspace_alone(home: Path, caller: Caller) -> None:
    stranger = Caller(door="stdio", client="other", key="other", workspace="/elsewhere")
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        open_records(home / "handrail.db") as records,
    ):
        own = Call.open(journal, "toy", "Toy", {}, caller)
        own.settle(DONE)
        others = [Call.open(journal, "toy", "Toy", {}, stranger) for _ in range(1100)]
        asking = Call.open(journal, "list_calls", "List calls", {}, caller)
        await journal.committed(asking.opened_seq)
        listing, reading = ListCalls(records), GetCall(records)
        listed = await listing.run(await listing.plan(ListCallsInput(), caller), asking)
        still = await listing.run(await listing.plan(ListCallsInput(open_only=True), caller), asking)
        got = await reading.run(await reading.plan(GetCallInput(call_id=own.id), caller), asking)

    assert len(listed.text.splitlines()) == 1, "neither the neighbour's many, nor the listing itself"
    assert own.id in listed.text
    assert others[-1].id not in listed.text
    assert still.text == "There are no calls."
    assert "done" in got.text
    assert "fruit" in got.text
