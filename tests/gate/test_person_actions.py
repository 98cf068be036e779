"""Cancel and Complete, at every moment of a call: the client is answered at once, and the record stays honest."""

from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN, BOB
from tests.support.gate_world import gate_world, make_answer, rule
from tests.support.sample_tools import (
    Echo,
    Patient,
    Planner,
    Printer,
    Sheet,
    Stubborn,
    StubbornPrinter,
    Untidy,
    Write,
    word_result,
)

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.tool import CallReport, ReceiptFacts, Refusal, Salvage
from handrail.store.events import ApprovalAnswered, ApprovalWithdrawn, CallSettled, CallStopped
from handrail.store.values import Result

pytestmark = pytest.mark.anyio


async def test_cancel_answers_the_client_and_the_tools_clean_up_runs(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.cancel(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("cancelled", "ann")
        assert reply.outcome.message == "Cancelled by user"
        await here.fact(CallStopped, call)
        assert tool.tidied == 1
        assert await here.kinds(call) == ["CallOpened", "CallStarted", "CallSettled", "CallStopped"]


async def test_cancel_keeps_what_there_is_so_far(tmp_path: Path) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        person_actions.cancel(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.result == word_result("so far")
        await here.fact(CallStopped, call)
        assert tool.tidied == 1


async def test_a_cancelled_call_is_answered_before_a_stubborn_tool_has_stopped(tmp_path: Path) -> None:
    tool = Stubborn()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("stubborn")
        call = await client.call()
        await tool.started.wait()
        person_actions.cancel(here.gate, call, ANN)
        reply = await client.reply()
        assert tool.tidied == 0, "the client did not wait for the tool"
        assert reply.call.receipt.stopped is False
        assert (await here.fact(CallSettled, call)).receipt.stopped is False
        assert "CallStopped" not in await here.kinds(call)
        tool.go.set()
        stopped = await here.fact(CallStopped, call)
        assert (stopped.receipt.stopped, stopped.receipt.ended_by) == (True, "ann")
        assert tool.tidied == 1


async def test_cancel_of_a_waiting_call_withdraws_the_question_which_is_not_a_denial(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        assert person_actions.cancel(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "cancelled"
        assert (await here.fact(ApprovalWithdrawn, call)).why == "the call was cancelled by ann"
        assert approval.answered is None
        assert "ApprovalAnswered" not in await here.kinds(call)
        assert tool.runs == []


async def test_complete_returns_what_there_is_while_the_work_runs_on(tmp_path: Path) -> None:
    tool = Printer(runs_on=True)
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.complete(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("completed", "ann")
        assert (reply.outcome.result, reply.outcome.message) == (word_result("so far"), "Force-completed.")
        assert (tool.tidied, call.receipt.stopped) == (0, False)
        assert call.id not in here.gate.open
        tool.go.set()
        assert (await here.fact(CallStopped, call)).receipt.stopped is True
        assert tool.tidied == 1
        assert call.outcome == reply.outcome, "the late result changes nothing"
        assert len(client.replies) == 1


async def test_complete_of_work_that_cannot_run_on_stops_it(tmp_path: Path) -> None:
    tool = Printer(runs_on=False)
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        person_actions.complete(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "completed"
        await here.fact(CallStopped, call)
        assert (tool.tidied, tool.go.is_set()) == (1, False)


async def test_complete_with_stop_ends_the_work_and_does_not_wait_for_a_stubborn_tool(tmp_path: Path) -> None:
    tool = StubbornPrinter()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("stubborn_printer")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.complete(here.gate, call, ANN, stop=True)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.result) == ("completed", word_result("so far"))
        assert "stopped" in reply.outcome.message
        assert (tool.tidied, call.receipt.stopped) == (0, False)
        tool.go.set()
        assert (await here.fact(CallStopped, call)).receipt.stopped is True


async def test_complete_of_work_with_nothing_to_give_does_what_cancel_does(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.complete(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.message) == ("cancelled", "Cancelled by user")


async def test_complete_of_a_waiting_write_accepts_what_was_shown(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write", {"word": "a"})
        call = await client.call()
        approval = await here.question(call)
        assert person_actions.completion(here.gate, call).does == "accept_diff"
        assert person_actions.complete(here.gate, call, ANN, digest=approval.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.runs) == ("done", ["a"])
        assert approval.answered is not None
        assert (approval.answered.kind, str(approval.answered.by)) == ("allow", "ann")


@pytest.mark.parametrize("digest", [None, "0" * 64])
async def test_complete_accepts_nothing_but_the_diff_that_was_shown(
    tmp_path: Path, digest: str | None
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        with pytest.raises(Conflict, match="out of date"):
            person_actions.complete(here.gate, call, ANN, digest=digest)
        assert (approval.open, call.status, tool.runs) == (True, "waiting", [])
        person_actions.cancel(here.gate, call, ANN)
        await client.reply()


async def test_complete_of_any_other_waiting_call_never_runs_it(tmp_path: Path) -> None:
    tool = Printer("run")
    async with gate_world(tmp_path, tool) as here:
        client = here.client("printer")
        call = await client.call()
        approval = await here.question(call)
        assert person_actions.completion(here.gate, call).does == "cancel"
        assert person_actions.complete(here.gate, call, ANN, digest=approval.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.result) == ("cancelled", None)
        assert tool.runs == []
        assert approval.withdrawn is not None


async def test_complete_with_text_tells_the_client_the_persons_words(tmp_path: Path) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.complete(here.gate, call, ANN, text="it printed 42")
        reply = await client.reply()
        assert reply.outcome is not None
        expected = Result(text="it printed 42", data={"output": "it printed 42", "output_captured": False})
        assert (reply.outcome.ending, reply.outcome.result) == ("completed", expected)
        assert "the person's" in reply.outcome.message
        assert tool.tidied == 0, "the work goes on"
        tool.go.set()
        await here.fact(CallStopped, call)


async def test_complete_with_text_and_stop_ends_the_work(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.complete(here.gate, call, ANN, text="enough", stop=True)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "completed"
        await here.fact(CallStopped, call)
        assert (tool.tidied, tool.go.is_set()) == (1, False)


async def test_complete_with_text_on_a_waiting_call_answers_and_never_runs_it(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        assert person_actions.complete(here.gate, call, ANN, text="I did it myself")
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "completed"
        await here.fact(CallStopped, call)
        assert (approval.withdrawn, tool.runs) == ("the call was completed by ann", [])


async def test_complete_with_text_on_a_call_that_is_being_planned_never_asks_or_runs(tmp_path: Path) -> None:
    tool = Planner("write")
    async with gate_world(tmp_path, tool) as here:
        client = here.client("planner")
        call = await client.call()
        await tool.planning.wait()
        assert person_actions.complete(here.gate, call, ANN, text="never mind")
        await client.reply()
        tool.planned.set()
        await here.fact(CallStopped, call)
        assert tool.runs == []
        assert "ApprovalOpened" not in await here.kinds(call)


async def test_complete_with_text_in_the_tick_of_the_answer_never_runs_it(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        assert person_actions.complete(here.gate, call, BOB, text="I did it myself")
        await client.reply()
        await here.fact(CallStopped, call)
        assert tool.runs == []


async def test_forcing_a_call_twice_is_harmless_and_says_that_it_was_late(tmp_path: Path) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.complete(here.gate, call, ANN)
        assert not person_actions.complete(here.gate, call, BOB)
        assert not person_actions.complete(here.gate, call, BOB, text="mine", stop=True)
        assert not person_actions.cancel(here.gate, call, BOB)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("completed", "ann")
        assert tool.tidied == 0, "who came late stops nothing"
        tool.go.set()
        await here.fact(CallStopped, call)
        assert not person_actions.cancel(here.gate, call, BOB)


async def test_when_a_tool_ends_as_it_is_completed_exactly_one_result_is_sent(tmp_path: Path) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer", {"word": "whole"})
        call = await client.call()
        await tool.started.wait()
        tool.go.set()
        assert person_actions.complete(here.gate, call, ANN), (
            "the tool is done, but its result is not there yet"
        )
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.result == word_result("so far")
        await here.fact(CallStopped, call)
        assert len(client.replies) == 1


async def test_a_result_that_came_first_is_not_overturned_by_cancel(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        reply = await here.submit("echo")
        assert not person_actions.cancel(here.gate, reply.call, ANN)
        assert not person_actions.complete(here.gate, reply.call, ANN)
        assert reply.call.outcome == reply.outcome


async def test_a_result_leaves_before_what_the_work_left_behind_has_ended(tmp_path: Path) -> None:
    tool = Untidy()
    async with gate_world(tmp_path, tool) as here:
        reply = await here.submit("untidy")
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.call.receipt.stopped) == ("done", False)
        await tool.started.wait()
        assert "CallStopped" not in await here.kinds(reply.call)
        tool.go.set()
        assert (await here.fact(CallStopped, reply.call)).receipt.stopped is True
        assert tool.tidied == 1


@pytest.mark.parametrize("verb", ["cancel", "complete"])
async def test_what_a_tool_has_to_give_changes_the_receipt_only_when_the_call_is_settled_with_it(
    tmp_path: Path, verb: str
) -> None:
    class Counter(Printer):
        def salvage(self, call: CallReport) -> Salvage | None:
            given = ReceiptFacts(bytes_kept=6)
            return Salvage(result=word_result("so far"), message="", runs_on=False, receipt=given)

    tool = Counter()
    async with gate_world(tmp_path, tool, default="allow") as here:
        call = await here.client("printer").call()
        await tool.started.wait()
        assert person_actions.completion(here.gate, call).does == "return_output"
        assert call.receipt.bytes_kept == 0, "a look changes nothing"
        assert (person_actions.cancel if verb == "cancel" else person_actions.complete)(here.gate, call, ANN)
        assert (await here.fact(CallSettled, call)).receipt.bytes_kept == 6
        await here.fact(CallStopped, call)


async def test_a_tool_that_cannot_say_what_it_has_does_not_keep_a_person_from_ending_it(
    tmp_path: Path,
) -> None:
    class Mute(Printer):
        def salvage(self, call: CallReport) -> Salvage | None:
            raise ZeroDivisionError

    tool = Mute()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        assert person_actions.completion(here.gate, call).does == "cancel"
        assert person_actions.cancel(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.result) == ("cancelled", None)
        await here.fact(CallStopped, call)


async def test_what_complete_would_do_is_told_without_doing_it(tmp_path: Path) -> None:
    printer, patient = Printer(runs_on=True), Patient()
    async with gate_world(tmp_path, printer, patient, default="allow") as here:
        calls: list[Call] = []
        for tool in (printer, patient):
            calls.append(await here.client(tool.name).call())
            await tool.started.wait()
        told = [person_actions.completion(here.gate, call) for call in calls]
        assert [(one.does, one.tells, one.runs_on) for one in told] == [
            ("return_output", "Force-completed.", True),
            ("cancel", "Cancelled by user", False),
        ]
        assert [call.status for call in calls] == ["running", "running"]
        for call in calls:
            person_actions.cancel(here.gate, call, ANN)
        await anyio.wait_all_tasks_blocked()


async def test_a_review_in_hand_is_accepted_as_the_person_left_it(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("sheet", {"word": "new"})
        call = await client.call()
        approval = await here.question(call)
        edit = await person_actions.edit(here.gate, call, content="newer")
        with pytest.raises(Conflict, match="out of date"):
            await person_actions.accept(here.gate, call, ANN, approval.digest, "newer")
        with pytest.raises(Conflict, match="out of date"):
            person_actions.complete(here.gate, call, ANN, digest=edit.digest)
        assert await person_actions.accept(here.gate, call, ANN, edit.digest, "newer")
        await client.reply()
        assert tool.holds == "newer"
        assert not await person_actions.accept(here.gate, call, BOB, edit.digest, "newer"), "it is too late"


async def test_cancel_of_a_waiting_write_rejects_it(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("sheet", {"word": "new"})
        call = await client.call()
        await here.question(call)
        edit = await person_actions.edit(here.gate, call, content="newer")
        assert person_actions.cancel(here.gate, call, ANN)
        await client.reply()
        assert not await person_actions.accept(here.gate, call, BOB, edit.digest, "newer")
        assert (call.status, tool.holds) == ("cancelled", "old")


async def test_a_proposal_is_the_file_as_it_is_and_as_it_would_be(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool, Write()) as here:
        call = await here.client("sheet", {"word": "new"}).call()
        await here.question(call)
        proposal, changed, difference = await person_actions.proposal(here.gate, call)
        assert (proposal.path, proposal.before, proposal.after) == ("/w/sheet", "old", "new")
        assert (changed, difference) == (None, "")
        assert (tool.holds, tool.runs) == ("old", [])
        tool.holds = "other"
        proposal, changed, difference = await person_actions.proposal(here.gate, call)
        assert (proposal.before, proposal.after) == ("other", "new")
        assert (changed, difference) == ("The sheet changed on disk.", "-old\n+other")
        tool.holds = "new"  # so that it cannot be planned any more
        proposal, changed, difference = await person_actions.proposal(here.gate, call)
        assert (proposal.before, proposal.after, difference) == ("old", "new", "-old\n+new")
        person_actions.cancel(here.gate, call, ANN)
        with pytest.raises(Conflict, match="Already withdrawn"):
            await person_actions.proposal(here.gate, call)
        other = await here.client("write").call()
        await here.question(other)
        with pytest.raises(Refusal, match="proposes no file"):
            await person_actions.proposal(here.gate, other)
        person_actions.cancel(here.gate, other, ANN)


async def test_nothing_is_proposed_edited_or_accepted_of_a_call_that_does_not_wait(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        call = await here.client("patient").call()
        await tool.started.wait()
        with pytest.raises(Conflict, match="waits for nobody"):
            await person_actions.proposal(here.gate, call)
        with pytest.raises(Conflict, match="waits for nobody"):
            await person_actions.edit(here.gate, call, {"word": "b"})
        assert not await person_actions.accept(here.gate, call, ANN, "0" * 64, "mine")
        tool.go.set()
        await call.settled()


async def test_several_questions_of_low_risk_are_allowed_in_one_step_each_by_itself(tmp_path: Path) -> None:
    look, write = Echo("read"), Write()
    async with gate_world(tmp_path, look, write) as here:
        await here.rules.add(rule("ask", tool="echo"), ANN)
        calls = [await here.client("echo", {"word": str(turn)}).call() for turn in range(5)]
        calls.append(await here.client("write").call())
        asked = [await here.question(call) for call in calls]
        assert [approval.asked.risk for approval in asked] == ["low"] * 5 + ["medium"]
        await person_actions.answer(here.gate, asked[1], make_answer("deny", "bob"), asked[1].digest)
        seen = [(approval, approval.digest) for approval in asked]
        seen[2] = (asked[2], "0" * 64)
        seen.append(seen[0])
        results = await person_actions.allow_low(here.gate, seen, ANN)
        assert [result.won for result in results] == [True, False, False, True, True, False, False]
        assert [result.approval for result in results] == [approval.id for approval, _ in seen]
        told = [result.message for result in results]
        assert told[0] == "Allowed."
        assert told[1] == "Already denied by bob, 0 s ago."
        assert "out of date" in told[2]
        assert (
            told[5] == "Its risk is medium, so it is not allowed together with others. Answer it by itself."
        )
        assert told[6] == "Already allowed by ann, 0 s ago."
        for call in (calls[0], calls[3], calls[4]):
            await call.settled()
            assert (await here.fact(ApprovalAnswered, call)).by == "ann"
        assert (sorted(look.runs), write.runs) == (["0", "3", "4"], [])
        for call in (calls[2], calls[5]):
            assert call.status == "waiting"
            person_actions.cancel(here.gate, call, ANN)
