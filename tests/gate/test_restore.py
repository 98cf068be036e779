"""The daemon leaves or dies, and the next one takes over: what ran is said to be unknown, what waits waits on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.gate_world import GateWorld, caller, gate_world, make_answer, rule
from tests.support.sample_tools import Echo, Patient, Planner, Printer, Sheet, Stubborn, Write, word_result

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Call
from handrail.gate.gate import STOPPED_BEFORE
from handrail.gate.restore import INTERRUPTED, NOT_BEGUN, NOT_BEGUN_ALLOWED, Restored, restore
from handrail.store.events import (
    ApprovalExpired,
    CallClientBack,
    CallClientGone,
    CallSettled,
    CallStopped,
    OperationEnded,
)
from handrail.store.records import open_records
from handrail.store.values import Result

pytestmark = pytest.mark.anyio


def crash(path: Path, copy: Path) -> Path:
    """What a crash at this moment leaves on disk."""
    copy.mkdir()
    with (
        closing(sqlite3.connect(path / "handrail.db")) as before,
        closing(sqlite3.connect(copy / "handrail.db")) as after,
    ):
        before.backup(after)
    return copy


def crash_before_settling(path: Path, copy: Path) -> Path:
    """What a crash leaves that came just before the outcome could be written."""
    with closing(sqlite3.connect(crash(path, copy) / "handrail.db", isolation_level=None)) as database:
        database.execute(
            "UPDATE calls SET ending = NULL, settled_by = NULL, message = NULL, settled_at = NULL, stopped_at = NULL, "
            "settled_seq = NULL, stopped_seq = NULL"
        )
        database.execute("DELETE FROM events WHERE kind = 'CallSettled'")
    return copy


def aged(path: Path, ms: int) -> None:
    """All questions were asked so much longer ago."""
    with closing(sqlite3.connect(path / "handrail.db", isolation_level=None)) as database:
        database.execute("UPDATE approvals SET opened_at = opened_at - ?", (ms,))


async def drafted(call: Call) -> None:
    """Return when a restored call has been worked out anew."""
    while call.approval is None or call.approval.draft is None:
        await anyio.lowlevel.checkpoint()


def no_output(terminal: str) -> Result | None:
    return None


async def take_over(here: GateWorld) -> Restored:
    async with open_records(here.path / "handrail.db") as records:
        return await restore(here.gate, records, no_output)


async def waiting(path: Path, *tools: Echo) -> Call:
    """A call that a daemon left waiting for a person."""
    async with gate_world(path, *tools) as here:
        client = here.client(tools[0].name, {"word": "kept"})
        call = await client.call()
        await here.question(call)
        here.gate.leave()
        await here.fact(CallClientGone, call)
    assert all(reply.outcome is None for reply in client.replies), "the client was not told that it ended"
    return call


async def test_a_call_is_marked_gone_only_while_its_client_is_away(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        call = here.gate.open[left.id]
        here.gate.mark_client_back("another client")
        assert call.client_gone
        here.gate.mark_client_back(call.caller.key)
        assert (call.client_gone, call.handed_back) == (False, True)
        await here.fact(CallClientBack, call)
        here.gate.mark_client_left(call.caller.key)
        assert call.client_gone


async def test_a_daemon_that_leaves_interrupts_what_runs(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        await tool.started.wait()
        here.gate.leave()
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("interrupted", "handrail")
        assert "unknown" in reply.outcome.message
        assert "not run again" in reply.outcome.message
    async with gate_world(tmp_path, tool) as here:
        assert await take_over(here) == Restored(interrupted=1, approvals_kept=0)
        assert (await here.fact(CallSettled, call)).ending == "interrupted"
        assert (await here.fact(CallStopped, call)).receipt.stopped, (
            "its work ended with the daemon that did it"
        )
        assert tool.runs == ["hello"]


async def test_a_waiting_call_outlives_the_daemon_and_runs_once_when_it_is_allowed(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    async with gate_world(tmp_path, tool) as here:
        assert await take_over(here) == Restored(interrupted=0, approvals_kept=1)
        call = here.gate.open[left.id]
        assert (call.status, call.client_gone) == ("waiting", True)
        assert call.approval is not None
        assert left.approval is not None
        assert (call.approval.id, call.approval.digest) == (left.approval.id, left.approval.digest)
        await person_actions.answer(here.gate, call.approval, make_answer("allow"), left.approval.digest)
        await call.settled()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.result) == ("done", word_result("kept"))
        assert tool.runs == ["kept"]
        assert await here.kinds(call) == [
            "CallOpened",
            "ApprovalOpened",
            "CallHandedBack",
            "CallClientGone",
            "ApprovalAnswered",
            "CallStarted",
            "CallSettled",
        ]
        with pytest.raises(Conflict):
            await person_actions.answer(
                here.gate, call.approval, make_answer("allow", "bob"), left.approval.digest
            )
    async with gate_world(tmp_path, tool) as here:
        assert await take_over(here) == Restored(interrupted=0, approvals_kept=0)
    assert tool.runs == ["kept"]


@pytest.mark.parametrize(("verb", "ending"), [("deny", "denied"), ("cancel", "cancelled")])
async def test_a_restored_call_can_be_denied_or_cancelled(tmp_path: Path, verb: str, ending: str) -> None:
    tool = Write()
    await waiting(tmp_path, tool)
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        (call,) = here.gate.open.values()
        assert call.approval is not None
        if verb == "deny":
            await person_actions.answer(here.gate, call.approval, make_answer("deny"), call.approval.digest)
        else:
            person_actions.cancel(here.gate, call, ANN)
        await call.settled()
        assert (await here.fact(CallSettled, call)).ending == ending
        assert tool.runs == []


async def test_a_call_may_wait_through_many_daemons_and_loses_its_client_once(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    for _ in range(3):
        async with gate_world(tmp_path, tool) as here:
            assert (await take_over(here)).approvals_kept == 1
            assert (await here.kinds(left)).count("CallClientGone") == 1
            here.gate.leave()


async def test_the_same_client_asking_again_after_a_restart_gets_the_call_that_waits(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        again = await here.submit("write", {"word": "kept"})
        assert (again.call.id, again.repeated, again.outcome) == (left.id, True, None)
        assert len(here.gate.open) == 1


@pytest.mark.parametrize("looked", [False, True])
async def test_what_changed_while_no_daemon_ran_is_not_done(tmp_path: Path, looked: bool) -> None:
    """Whether or not the new daemon has looked at it anew by the time it is answered."""
    tool = Write()
    await waiting(tmp_path, tool)
    tool.bound = {"version": 2}
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        (call,) = here.gate.open.values()
        assert call.approval is not None
        if looked:
            await drafted(call)
        assert (call.approval.draft is not None) == looked
        await person_actions.answer(here.gate, call.approval, make_answer("allow"), call.approval.digest)
        await call.settled()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, tool.runs) == ("failed", [])
        assert "changed" in settled.message


async def test_a_waiting_call_whose_tool_is_gone_fails_with_a_sentence(tmp_path: Path) -> None:
    left = await waiting(tmp_path, Write())
    async with gate_world(tmp_path, Echo()) as here:
        await take_over(here)
        settled = await here.fact(CallSettled, left)
        assert (settled.ending, settled.message) == (
            "failed",
            "There is no tool named 'write'. Use one of: echo.",
        )
        assert here.gate.open == {}


async def test_a_crash_leaves_running_calls_to_be_interrupted_and_waiting_ones_to_be_answered(
    tmp_path: Path,
) -> None:
    run, write = Patient(), Write()
    async with gate_world(tmp_path, run, write) as here:
        running = await here.client("patient").call()
        asked = await here.client("write").call()
        await run.started.wait()
        await here.question(asked)
        await here.facts()
        remains = crash(tmp_path, tmp_path / "after")
        here.gate.leave()
    async with gate_world(remains, run, write) as here:
        assert await take_over(here) == Restored(interrupted=1, approvals_kept=1)
        settled = await here.fact(CallSettled, running)
        assert (settled.ending, settled.by) == ("interrupted", "handrail")
        await here.fact(CallClientGone, asked)
        call = here.gate.open[asked.id]
        assert call.approval is not None
        await person_actions.answer(here.gate, call.approval, make_answer("allow"), call.approval.digest)
        await call.settled()
        assert (run.runs, write.runs) == (["hello"], ["hello"])


async def test_a_crash_after_the_answer_uses_up_the_approval_and_runs_nothing(tmp_path: Path) -> None:
    """The answer is on record and the call has not started: nobody knows, so it is not run by itself."""
    tool = Planner("write")
    async with gate_world(tmp_path, tool) as here:
        client = here.client("planner")
        call = await client.call()
        tool.planned.set()
        approval = await here.question(call)
        tool.planned = anyio.Event()  # it plans again once it is allowed, and the crash comes then
        await here.journal.committed(
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        )
        remains = crash(tmp_path, tmp_path / "after")
        here.gate.leave()
    async with gate_world(remains, tool) as here:
        assert await take_over(here) == Restored(interrupted=1, approvals_kept=0)
        assert (await here.fact(CallSettled, call)).ending == "interrupted"
        assert (tool.runs, here.gate.open) == ([], {})


async def test_a_client_that_is_cut_off_by_the_leaving_daemon_cancels_nothing(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        await here.question(call)
        here.gate.leave()
        client.hang_up()
        await client.ended.wait()
        assert call.status == "waiting"
        assert "CallSettled" not in await here.kinds(call)


async def test_a_leaving_daemon_starts_nothing_new(tmp_path: Path) -> None:
    tool = Echo("write")
    async with gate_world(tmp_path, tool, default="allow") as here:
        here.gate.leave()
        reply = await here.submit("echo")
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.runs) == ("failed", [])
        assert "stopping" in reply.outcome.message


async def test_an_answer_to_a_leaving_daemon_is_never_run_twice(tmp_path: Path) -> None:
    class Asked(Patient):
        completes_by_accepting = True

    tool = Asked("write")
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        approval = await here.question(call)
        here.gate.leave()
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        await tool.started.wait()
    async with gate_world(tmp_path, tool) as here:
        assert (await take_over(here)).approvals_kept == 0
        assert (await here.fact(CallSettled, call)).ending == "interrupted"
        assert tool.runs == ["hello"]


async def test_a_daemon_that_falls_without_taking_leave_withdraws_no_question(tmp_path: Path) -> None:
    """Its task group is cancelled by some fault, and nobody called `leave`."""
    run, write = Printer("read"), Write()
    async with gate_world(tmp_path, run, write) as here:
        running = await here.client("printer").call()
        asked = await here.client("write").call()
        await run.started.wait()
        await here.question(asked)
        here.group.cancel_scope.cancel()
    async with gate_world(tmp_path, run, write) as here:
        found = await take_over(here)
        assert found.approvals_kept == 1
        assert (await here.fact(CallSettled, running)).ending == "interrupted"
        assert here.gate.open[asked.id].status == "waiting"


async def test_a_waiting_call_of_an_operation_outlives_the_daemon_too(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            client = here.client("write", caller=caller(operation=operation.id))
            call = await client.call()
            await here.question(call)
            here.gate.leave()
        facts = await here.facts()
        ended = [fact for fact in facts if isinstance(fact, OperationEnded)]
        assert [(end.cancelled_by, end.cancelled_calls) for end in ended] == [(None, ())]
    async with gate_world(tmp_path, tool) as here:
        assert (await take_over(here)).approvals_kept == 1
        restored = here.gate.open[call.id]
        assert restored.approval is not None
        await person_actions.answer(
            here.gate, restored.approval, make_answer("allow"), restored.approval.digest
        )
        await restored.settled()
        assert tool.runs == ["hello"]


async def test_a_stubborn_tool_does_not_keep_the_client_of_a_leaving_daemon_waiting(tmp_path: Path) -> None:
    tool = Stubborn()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("stubborn")
        await tool.started.wait()
        here.gate.leave()
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.tidied) == ("interrupted", 0)
        tool.go.set()


async def test_a_crash_after_an_edited_answer_runs_nothing_and_says_that_nothing_was_done(
    tmp_path: Path,
) -> None:
    """The answer is on record and the call had not begun: what a person edited is not run by itself either."""
    tool = Planner("write")
    tool.planned.set()
    async with gate_world(tmp_path, tool) as here:
        call = await here.client("planner", {"word": "a"}).call()
        approval = await here.question(call)
        edit = await person_actions.edit(here.gate, call, {"word": "b"})
        answer = Answer(kind="allow", by=ANN, input={"word": "b"})
        seq = await person_actions.answer(here.gate, approval, answer, edit.digest)
        tool.planned = anyio.Event()  # it is planned again, and the crash comes then
        await here.journal.committed(seq)
        remains = crash(tmp_path, tmp_path / "after")
        here.gate.leave()
    async with gate_world(remains, tool) as here:
        assert await take_over(here) == Restored(interrupted=1, approvals_kept=0)
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.by, settled.result) == ("interrupted", "handrail", None)
        assert settled.message == NOT_BEGUN_ALLOWED
        assert (tool.runs, here.gate.open) == ([], {})


async def test_a_daemon_that_leaves_before_an_allowed_call_began_says_that_nothing_was_done(
    tmp_path: Path,
) -> None:
    tool = Planner("write")
    tool.planned.set()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("planner")
        approval = await here.question(await client.call())
        tool.planned = anyio.Event()
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        here.gate.leave()
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.message) == ("interrupted", STOPPED_BEFORE)
        assert tool.runs == []


async def test_a_crash_after_an_edited_call_began_says_what_was_edited(tmp_path: Path) -> None:
    tool = Patient("write")
    async with gate_world(tmp_path, tool) as here:
        call = await here.client("patient", {"word": "a"}).call()
        approval = await here.question(call)
        edit = await person_actions.edit(here.gate, call, {"word": "b"})
        await person_actions.answer(
            here.gate, approval, Answer(kind="allow", by=ANN, input={"word": "b"}), edit.digest
        )
        await tool.started.wait()
        await here.facts()
        remains = crash(tmp_path, tmp_path / "after")
        here.gate.leave()
    async with gate_world(remains, tool) as here:
        await take_over(here)
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.message) == ("interrupted", INTERRUPTED)
        assert settled.result is not None
        assert settled.result.data["edited"] == {"input": {"word": "b"}, "asked": {"word": "a"}}


async def test_a_crash_after_a_denial_leaves_a_denial(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        call = await here.client("write").call()
        approval = await here.question(call)
        await person_actions.answer(here.gate, approval, make_answer("deny", "ann", "no"), approval.digest)
        await call.settled()
    remains = crash_before_settling(tmp_path, tmp_path / "after")
    async with gate_world(remains, tool) as here:
        assert await take_over(here) == Restored(interrupted=0, approvals_kept=0)
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.by, settled.message) == ("denied", "ann", "no")
        assert tool.runs == []


async def test_a_crash_while_a_call_was_planned_says_that_nothing_was_done(tmp_path: Path) -> None:
    tool = Planner("write")
    async with gate_world(tmp_path, tool) as here:
        call = await here.client("planner").call()
        await tool.planning.wait()
        await here.facts()
        remains = crash(tmp_path, tmp_path / "after")
        here.gate.leave()
    async with gate_world(remains, tool) as here:
        assert (await take_over(here)).interrupted == 1
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.message) == ("interrupted", NOT_BEGUN)


async def test_a_restored_question_can_be_edited_and_answered_with_rules(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        call = here.gate.open[left.id]
        assert call.approval is not None
        await drafted(call)
        edit = await person_actions.edit(here.gate, call, {"word": "edited"})
        given = Answer(kind="allow", by=ANN, input={"word": "edited"}, rules=(rule(tool="write"),))
        await person_actions.answer(here.gate, call.approval, given, edit.digest)
        await call.settled()
        assert tool.runs == ["edited"]
        again = await here.submit("write", {"word": "next"})
        assert again.outcome is not None
        assert tool.runs == ["edited", "next"]


async def test_a_restored_proposal_can_be_reviewed(tmp_path: Path) -> None:
    tool = Sheet()
    left = await waiting(tmp_path, tool)
    tool.holds = "other"  # while no daemon ran
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        call = here.gate.open[left.id]
        approval = call.approval
        assert approval is not None
        await drafted(call)
        shown = await person_actions.proposal(here.gate, call)
        assert shown.changed is not None
        assert "while Handrail was not running" in shown.changed
        edit = await person_actions.edit(here.gate, call, content="reviewed")
        given = Answer(kind="allow", by=ANN, content="reviewed")
        await person_actions.answer(here.gate, approval, given, edit.digest)
        await call.settled()
        assert tool.holds == "reviewed"


async def test_a_rule_made_after_a_restart_answers_what_waits_since_before(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    async with gate_world(tmp_path, tool) as here:
        await take_over(here)
        call = here.gate.open[left.id]
        await drafted(call)
        await here.rules.add(rule(tool="write"), ANN)
        await call.settled()
        assert (call.status, tool.runs) == ("done", ["kept"])


async def test_twenty_questions_outlive_the_daemon_and_each_is_answered_once(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        for turn in range(20):
            await here.question(await here.client("write", {"word": str(turn)}).call())
        here.gate.leave()
    async with gate_world(tmp_path, tool) as here:
        assert (await take_over(here)).approvals_kept == 20
        calls = list(here.gate.open.values())
        for number, call in enumerate(calls):
            assert call.approval is not None
            kind = "deny" if number % 4 == 0 else "allow"
            await person_actions.answer(here.gate, call.approval, make_answer(kind), call.approval.digest)
        for call in calls:
            await call.settled()
        assert sorted(tool.runs, key=int) == [str(turn) for turn in range(20) if turn % 4]


async def test_the_expiry_of_a_question_counts_across_a_restart(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    aged(tmp_path, 90_000)
    async with gate_world(tmp_path, tool, expire_seconds=90) as here:
        await take_over(here)
        call = here.gate.open[left.id]
        with anyio.fail_after(10):
            await call.settled()
        assert 90_000 <= (await here.fact(ApprovalExpired, call)).after_ms < 110_000
        assert (await here.fact(CallSettled, call)).message.startswith("Expired: nobody answered within 9")


async def test_a_restored_question_has_the_time_that_was_left(tmp_path: Path) -> None:
    tool = Write()
    left = await waiting(tmp_path, tool)
    aged(tmp_path, 90_000)
    async with gate_world(tmp_path, tool, expire_seconds=900) as here:
        await take_over(here)
        call = here.gate.open[left.id]
        await drafted(call)
        assert call.approval is not None
        assert call.approval.open


async def test_a_crash_after_a_question_expired_leaves_it_expired(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, expire_seconds=0.05) as here:
        call = await here.client("write").call()
        await here.fact(ApprovalExpired, call)
        await call.settled()
    remains = crash_before_settling(tmp_path, tmp_path / "after")
    async with gate_world(remains, tool) as here:
        assert await take_over(here) == Restored(interrupted=0, approvals_kept=0)
        settled = await here.fact(CallSettled, call)
        assert settled.message.startswith("Expired")
