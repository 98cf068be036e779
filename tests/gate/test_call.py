"""The facts of one call, and the status that follows from them."""

from pathlib import Path

import pytest
from tests.support.actors import ANN
from tests.support.gate_world import caller, gate_world

from handrail.gate.call import Call, Outcome, new_id
from handrail.gate.tool import CallReport, ReceiptFacts
from handrail.store.actor import tool_actor
from handrail.store.events import CallSettled, CallStopped
from handrail.store.journal import Journal
from handrail.store.values import ProcessSeen, Receipt, SignalSent

pytestmark = pytest.mark.anyio

DONE = Outcome(ending="done", by=tool_actor("echo"))
CANCELLED = Outcome(ending="cancelled", by=ANN)


def opened(journal: Journal) -> Call:
    return Call.open(journal, "echo", "echo hi", {"word": "hi"}, caller())


async def test_an_outcome_is_fixed_once(tmp_path: Path) -> None:
    async with gate_world(tmp_path, checked=False) as here:
        call = opened(here.journal)
        assert call.status == "running"
        assert call.settle(CANCELLED)
        assert not call.settle(DONE)
        assert (call.status, call.outcome, call.receipt.ended_by) == ("cancelled", CANCELLED, "ann")
        await call.settled()
        assert await here.kinds(call) == ["CallOpened", "CallSettled"]


async def test_a_call_that_was_settled_early_stops_once(tmp_path: Path) -> None:
    async with gate_world(tmp_path, checked=False) as here:
        call = opened(here.journal)
        call.stop()
        assert (await here.kinds(call)) == ["CallOpened"], "what has no outcome has not stopped"
        call.settle(CANCELLED)
        call.stop()
        call.stop()
        assert await here.kinds(call) == ["CallOpened", "CallSettled", "CallStopped"]
        assert (await here.fact(CallSettled, call)).receipt.stopped is False
        assert (await here.fact(CallStopped, call)).receipt.stopped is True


async def test_a_call_whose_work_had_ended_when_it_settled_says_so_at_once(tmp_path: Path) -> None:
    async with gate_world(tmp_path, checked=False) as here:
        call = opened(here.journal)
        call.settle(DONE, stopped=True)
        call.stop()
        assert await here.kinds(call) == ["CallOpened", "CallSettled"]
        assert (await here.fact(CallSettled, call)).receipt.stopped is True


async def test_a_call_is_handed_back_once_and_never_after_it_was_settled(tmp_path: Path) -> None:
    async with gate_world(tmp_path, checked=False) as here:
        call = opened(here.journal)
        assert call.hand_back() == call.hand_back()
        assert (call.handed_back, call.status, call.due.is_set()) == (True, "running", True)
        call.settle(DONE)
        late = opened(here.journal)
        late.settle(DONE)
        late.hand_back()
        assert late.handed_back is False
        assert await here.kinds(call) == ["CallOpened", "CallHandedBack", "CallSettled"]
        assert await here.kinds(late) == ["CallOpened", "CallSettled"]


async def test_a_tool_reports_facts_and_the_gate_alone_says_who_ended_the_call(tmp_path: Path) -> None:
    async with gate_world(tmp_path, checked=False) as here:
        call = opened(here.journal)
        report: CallReport = call
        assert (report.terminal, report.ended_by) == (None, None)
        report.use_terminal("t1")
        sent, left = SignalSent(signal="SIGINT", after_ms=0), ProcessSeen(pid=7, name="sleep")
        report.add_receipt(ReceiptFacts(signals=(sent,), bytes_kept=3))
        report.add_receipt(ReceiptFacts(processes_left=(left,), bytes_kept=5))
        call.settle(CANCELLED)
        assert (report.terminal, report.ended_by) == ("t1", ANN)
        assert (await here.fact(CallSettled, call)).receipt == Receipt(
            ended_by="ann", stopped=False, signals=(sent,), processes_left=(left,), bytes_kept=5
        )
        report.add_receipt(ReceiptFacts(processes_left=()))
        call.stop()
        assert (await here.fact(CallStopped, call)).receipt.stopped is True


def test_new_names_say_their_kind_and_do_not_repeat() -> None:
    names = {new_id("c") for _ in range(1000)}
    assert len(names) == 1000
    assert {name[0] for name in names} == {"c"}
