"""What is on record when: before an effect, before a reply; and what happens when nothing can be recorded."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.gate_world import full_disk, gate_world, hung_disk, make_answer, rule
from tests.support.sample_tools import Echo, Patient, Planner, Printer, ToyPlan, Write

from handrail.errors import Unwritable
from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.tool import CallReport
from handrail.store.database import open_files
from handrail.store.events import CallOpened, CallStopped
from handrail.store.journal import Journal
from handrail.store.query import Reader
from handrail.store.values import Result

pytestmark = pytest.mark.anyio


class Watched(Journal):
    """Counts how often somebody waits for a commit that nobody waited for before, however fast it comes."""

    waits = 0
    _awaited = 0

    async def committed(self, seq: int, *, sync: bool = True) -> None:
        self.waits += seq > self._awaited
        self._awaited = max(seq, self._awaited)
        await super().committed(seq, sync=sync)


@asynccontextmanager
async def open_watched(path: Path, head: Path) -> AsyncGenerator[Watched]:
    journal = Watched(await anyio.to_thread.run_sync(open_files, path, head), Reader(path))
    try:
        yield journal
    finally:
        journal.close()


class Witness(Echo):
    """Remembers how far the record had come when it was run."""

    name = "witness"

    def __init__(self, durable_at: list[int]) -> None:
        super().__init__("write")
        self._durable_at = durable_at

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        assert isinstance(call, Call)
        self._durable_at.append(call.journal.durable)
        return await super().work(plan, call)


@pytest.mark.parametrize(("action", "waits"), [("read", 1), ("write", 2)])
async def test_a_read_waits_for_one_commit_and_an_effect_for_two(
    tmp_path: Path, action: str, waits: int
) -> None:
    tool = Echo("read" if action == "read" else "write")
    async with gate_world(tmp_path, tool, default="allow", opens=open_watched) as here:
        await here.submit("echo")
        assert isinstance(here.journal, Watched)
        assert here.journal.waits == waits


@pytest.mark.parametrize(("action", "syncs"), [("read", False), ("write", True)])
async def test_a_read_is_answered_without_a_sync_of_the_disk_and_an_effect_with_one(
    tmp_path: Path, action: str, syncs: bool
) -> None:
    tool = Echo("read" if action == "read" else "write")
    async with gate_world(tmp_path, tool, default="allow") as here:
        await here.submit("echo")
        assert (here.journal.synced == here.journal.durable) == syncs


async def test_a_read_that_a_person_allowed_is_answered_with_a_sync(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo("read")) as here:
        await here.rules.add(rule("ask", tool="echo"), ANN)
        client = here.client("echo")
        approval = await here.question(await client.call())
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        await client.reply()
        assert here.journal.synced == here.journal.durable


async def test_an_effect_is_on_record_before_it_starts_and_its_outcome_before_it_is_told(
    tmp_path: Path,
) -> None:
    durable_at: list[int] = []
    async with gate_world(tmp_path, Witness(durable_at), default="allow") as here:
        reply = await here.submit("witness")
        durable_when_told = here.journal.durable
        seqs = {entry.event.kind: entry.seq for entry in await here.journal.since(0)}
        assert durable_at[0] >= seqs["CallStarted"] > seqs["CallOpened"]
        assert durable_when_told >= seqs["CallSettled"] == reply.call.settled_seq


async def test_an_answer_is_on_record_before_what_it_allows_starts(tmp_path: Path) -> None:
    durable_at: list[int] = []
    async with gate_world(tmp_path, Witness(durable_at)) as here:
        client = here.client("witness")
        approval = await here.question(await client.call())
        answered = await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        await client.reply()
        assert durable_at[0] > answered


async def test_while_the_disk_hangs_a_read_runs_but_is_not_told_and_an_effect_does_not_run(
    tmp_path: Path,
) -> None:
    read, effect = Echo(), Write()
    async with gate_world(tmp_path, read, effect, default="allow") as here:
        with hung_disk(tmp_path):
            clients = [here.client("echo"), here.client("write")]
            calls = [await client.call() for client in clients]
            await anyio.wait_all_tasks_blocked()
            assert (read.runs, effect.runs) == (["hello"], [])
            assert [client.ended.is_set() for client in clients] == [False, False]
            assert calls[0].outcome is not None
        for client in clients:
            outcome = (await client.reply()).outcome
            assert outcome is not None
            assert outcome.ending == "done"
        assert effect.runs == ["hello"]


async def test_a_cancel_while_the_disk_hangs_keeps_an_effect_from_starting(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, default="allow") as here:
        with hung_disk(tmp_path):
            client = here.client("write")
            call = await client.call()
            await anyio.wait_all_tasks_blocked()
            assert person_actions.cancel(here.gate, call, ANN)
            await anyio.wait_all_tasks_blocked()
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "cancelled"
        assert tool.runs == []


@pytest.mark.parametrize("default", ["allow", "ask"])
async def test_when_nothing_can_be_recorded_nothing_is_run_and_the_client_is_told_why(
    tmp_path: Path, default: str
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, default="allow" if default == "allow" else "ask") as here:
        with full_disk(tmp_path):
            with pytest.raises(Unwritable, match=r"disk full.*nothing was run"):
                await here.submit("write")
            await anyio.wait_all_tasks_blocked()
        assert (tool.runs, here.gate.open) == ([], {})
        client = here.client("write", {"word": "again"})
        call = await client.call()
        if default == "ask":
            approval = await here.question(call)
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.runs) == ("done", ["again"])


async def test_a_read_that_cannot_be_recorded_is_not_told(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        with full_disk(tmp_path), pytest.raises(Unwritable, match="disk full"):
            await here.submit("echo")
        reply = await here.submit("echo")
        assert reply.outcome is not None
        assert reply.outcome.ending == "done"
        assert here.gate.open == {}


async def test_a_result_is_not_told_when_the_opening_of_its_call_was_lost(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool, checked=False) as here:
        with full_disk(tmp_path):
            client = here.client("patient")
            call = await client.call()
            with pytest.raises(Unwritable):
                await here.journal.committed(call.opened_seq)
        tool.go.set()
        with pytest.raises(Unwritable, match="disk full"):
            await client.reply()
        assert "CallOpened" not in await here.kinds(call), "the result would belong to nothing on record"


@pytest.mark.parametrize(("default", "lost"), [("allow", "CallStarted"), ("ask", "ApprovalOpened")])
async def test_what_cannot_be_recorded_as_started_or_asked_is_neither_run_nor_asked(
    tmp_path: Path, default: str, lost: str
) -> None:
    tool = Planner("write")
    async with gate_world(tmp_path, tool, default="allow" if default == "allow" else "ask") as here:
        client = here.client("planner")
        call = await client.call()
        await here.fact(CallOpened, call)
        with full_disk(tmp_path, lost):
            tool.planned.set()
            reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("failed", "handrail")
        assert "disk full" in reply.outcome.message
        assert "nothing was run" in reply.outcome.message
        assert (tool.runs, here.gate.open) == ([], {})
        kinds = await here.kinds(call)
        assert kinds[0] == "CallOpened"
        assert kinds[-1] == "CallSettled"
        assert lost not in kinds


async def test_an_answer_that_cannot_be_recorded_allows_nothing(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        with full_disk(tmp_path, "ApprovalAnswered"):
            seq = await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
            with pytest.raises(Unwritable):
                await here.journal.committed(seq)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.runs) == ("failed", [])
        assert "disk full" in reply.outcome.message
        kinds = await here.kinds(call)
        assert kinds == ["CallOpened", "ApprovalOpened", "ApprovalWithdrawn", "CallSettled"]


async def test_an_effect_whose_outcome_cannot_be_recorded_is_told_as_unknown_not_as_undone(
    tmp_path: Path,
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, default="allow", checked=False) as here:
        with full_disk(tmp_path, "CallSettled"):
            reply = await here.submit("write")
        assert tool.runs == ["hello"]
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.result) == ("interrupted", None)
        assert "disk full" in reply.outcome.message
        assert "nothing was run" not in reply.outcome.message
        assert "unknown" in reply.outcome.message


async def test_a_cancel_that_cannot_be_recorded_still_stops_the_work(tmp_path: Path) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow", checked=False) as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        with full_disk(tmp_path, "CallSettled"):
            assert person_actions.cancel(here.gate, call, ANN)
            with pytest.raises(Unwritable):
                await call.settled()
        await client.ended.wait()
        await anyio.wait_all_tasks_blocked()
        assert tool.tidied == 1


async def test_a_call_is_handed_back_although_that_cannot_be_recorded(tmp_path: Path) -> None:
    tool = Patient("run")
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("patient", patience=0.2)
        call = await client.call()
        await tool.started.wait()
        with full_disk(tmp_path, "CallHandedBack"):
            reply = await client.reply()
        assert (reply.outcome, call.status) == (None, "running")
        tool.go.set()
        await call.settled()


async def test_when_the_disk_does_not_keep_up_a_call_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow", checked=False) as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        monkeypatch.setattr("handrail.store.writer.PENDING_BYTES", 1)
        with hung_disk(tmp_path):
            here.client("printer", {"word": "first to queue"})
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(Unwritable, match="does not keep up"):
                await here.submit("printer", {"word": "second"})
            assert person_actions.cancel(here.gate, call, ANN), "a person can end what runs all the same"
            reply = await client.reply()
            assert reply.outcome is not None
            assert reply.outcome.ending == "interrupted"
            with pytest.raises(Unwritable):
                await call.settled()
        assert "second" not in tool.runs
        await anyio.wait_all_tasks_blocked()
        assert tool.tidied >= 1
        here.gate.leave()


async def test_work_that_stopped_is_on_record_in_its_own_right(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        await tool.started.wait()
        person_actions.cancel(here.gate, call, ANN)
        await client.reply()
        stopped = await here.fact(CallStopped, call)
        assert stopped.receipt == call.receipt
