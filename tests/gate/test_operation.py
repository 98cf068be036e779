"""An operation: the calls made for one prompt, ended together, and no others."""

from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN, BOB
from tests.support.gate_world import Client, GateWorld, caller, gate_world, make_answer
from tests.support.sample_tools import Echo, Patient, Printer, Stubborn, Write, word_result

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.operation import UNWIND_SECONDS, Operation
from handrail.store.events import CallSettled, CallStopped, OperationEnded, OperationOpened

pytestmark = pytest.mark.anyio


async def ended(here: GateWorld, operation: Operation) -> OperationEnded:
    found = [e for e in await here.facts() if isinstance(e, OperationEnded) and e.operation == operation.id]
    assert len(found) == 1
    return found[0]


async def test_a_cancelled_operation_takes_all_of_its_calls_and_says_which(tmp_path: Path) -> None:
    printer, patient, write, other = Printer("read"), Patient(), Write(), Stubborn()
    async with gate_world(tmp_path, printer, patient, write, other) as here:
        outside = here.client("stubborn")
        await other.started.wait()
        async with here.gate.operation(caller()) as operation:
            inside = caller(operation=operation.id)
            quick = here.client("printer", {"word": "quick"}, caller=inside)
            await printer.started.wait()
            printer.go.set()
            await quick.reply()
            clients = [here.client(name, caller=inside) for name in ("patient", "write")]
            calls = [await client.call() for client in clients]
            await patient.started.wait()
            await here.question(calls[1])
            assert operation.cancel(ANN)
            assert not operation.cancel(BOB), "somebody was first"
        for client, call in zip(clients, calls, strict=True):
            outcome = (await client.reply()).outcome
            assert outcome is not None
            assert (outcome.ending, str(outcome.by)) == ("cancelled", "ann")
            await here.fact(CallStopped, call)
        end = await ended(here, operation)
        assert (end.cancelled_by, set(end.cancelled_calls)) == ("ann", {call.id for call in calls})
        assert (await outside.call()).status == "running"
        assert here.gate.operations == {}
        other.go.set()
        outcome = (await outside.reply()).outcome
        assert outcome is not None
        assert outcome.ending == "done"
        assert write.runs == []


async def test_the_record_names_the_cancelled_calls_however_late_the_operations_own_work_hears_of_it(
    tmp_path: Path,
) -> None:
    """The calls have unwound before the body of the operation sees the cancel."""
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            client = here.client("patient", caller=caller(operation=operation.id))
            call = await client.call()
            await tool.started.wait()
            with anyio.move_on_after(5, shield=True):
                operation.cancel(ANN)
                await here.fact(CallStopped, call)
        assert (await ended(here, operation)).cancelled_calls == (call.id,)


async def test_calls_are_named_too_when_the_tree_above_the_operation_is_cancelled(tmp_path: Path) -> None:
    tool = Printer("read")
    clients: list[Client] = []

    async def prompt(here: GateWorld, above: anyio.CancelScope) -> None:
        with above:
            async with here.gate.operation(caller()) as operation:
                clients.append(here.client("printer", caller=caller(operation=operation.id)))
                await anyio.sleep_forever()

    async with gate_world(tmp_path, tool) as here:
        above = anyio.CancelScope()
        here.group.start_soon(prompt, here, above)
        await tool.started.wait()
        operation = next(iter(here.gate.operations.values()))
        above.cancel()
        reply = await clients[0].reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("cancelled", "operation")
        assert reply.outcome.result == word_result("so far")
        end = await ended(here, operation)
        assert (end.cancelled_by, end.cancelled_calls) == (None, (reply.call.id,))


async def test_a_client_is_answered_before_a_stubborn_tool_of_its_cancelled_operation_has_stopped(
    tmp_path: Path,
) -> None:
    tool = Stubborn()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            client = here.client("stubborn", caller=caller(operation=operation.id))
            call = await client.call()
            await tool.started.wait()
            operation.cancel(ANN)
            with anyio.move_on_after(5, shield=True):
                await client.reply()
                assert (tool.tidied, call.receipt.stopped) == (0, False)
                tool.go.set()
        assert tool.tidied == 1, "an operation has ended when its work has"
        assert (await here.fact(CallStopped, call)).receipt.stopped is True


async def test_an_answer_after_the_operation_was_cancelled_comes_too_late(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            client = here.client("write", caller=caller(operation=operation.id))
            approval = await here.question(await client.call())
            operation.cancel(ANN)
            with pytest.raises(Conflict, match="withdrawn"):
                await person_actions.answer(here.gate, approval, make_answer("allow", "bob"), approval.digest)
        await client.reply()
        assert tool.runs == []


async def test_an_operation_that_ends_leaves_a_call_that_was_handed_back(tmp_path: Path) -> None:
    """A server that an agent started in the background outlives the prompt it was started for."""
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            reply = await here.submit("patient", caller=operation.caller, patience=0)
            assert reply.outcome is None
        assert (await ended(here, operation)).cancelled_calls == ()
        assert reply.call.status == "running"
        tool.go.set()
        assert (await here.fact(CallSettled, reply.call)).ending == "done"


async def test_an_operation_ends_while_the_work_of_a_completed_call_runs_on(tmp_path: Path) -> None:
    tool = Printer("read")
    async with gate_world(tmp_path, tool) as here:
        with anyio.fail_after(UNWIND_SECONDS / 3):
            async with here.gate.operation(caller()) as operation:
                reply = await here.submit("printer", caller=operation.caller, patience=0)
                await tool.started.wait()
                assert person_actions.complete(here.gate, reply.call, ANN)
        assert (await here.fact(CallSettled, reply.call)).ending == "completed"
        assert tool.tidied == 0
        tool.go.set()


async def test_an_operation_that_is_cancelled_takes_a_call_that_was_handed_back(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            reply = await here.submit("patient", caller=operation.caller, patience=0)
            operation.cancel(ANN)
        settled = await here.fact(CallSettled, reply.call)
        assert (settled.ending, settled.by) == ("cancelled", "ann")
        assert tool.tidied == 1
        assert (await ended(here, operation)).cancelled_calls == (reply.call.id,)


async def test_an_operation_that_ends_takes_a_call_that_somebody_still_waits_for(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as operation:
            client = here.client("patient", caller=operation.caller)
            await tool.started.wait()
        assert tool.tidied == 1, "its work has stopped when the operation is left"
        outcome = (await client.reply()).outcome
        assert outcome is not None
        assert (outcome.ending, str(outcome.by)) == ("cancelled", "operation")


async def test_the_record_says_why_an_operation_ended(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        async with here.gate.operation(caller()) as first:
            first.stop = "end_turn"
        async with here.gate.operation(caller()) as second:
            second.stop, second.error = "failed", "It fell."
        async with here.gate.operation(caller()) as third:
            third.cancel(ANN)
        async with here.gate.operation(caller()) as fourth:
            here.gate.leave()
        ends = [await ended(here, each) for each in (first, second, third, fourth)]
        assert [end.stop for end in ends] == ["end_turn", "failed", "cancelled", "interrupted"]
        assert [end.error for end in ends] == ["", "It fell.", "", ""]


async def test_an_operation_with_nothing_open_ends_without_cancelling(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        async with here.gate.operation(caller()) as operation:
            reply = await here.submit("echo", caller=caller(operation=operation.id))
            assert reply.outcome is not None
            assert reply.outcome.ending == "done"
        assert (await ended(here, operation)).cancelled_calls == ()
        assert not operation.cancel(ANN), "it had ended before"


async def test_cancelling_one_operation_does_not_touch_the_next(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        async with here.gate.operation(caller()) as first, here.gate.operation(caller()) as second:
            clients = [here.client("patient", caller=caller(operation=o.id)) for o in (first, second)]
            calls = [await client.call() for client in clients]
            await tool.started.wait()
            # `second` is the inner branch: cancelling it must not reach the outer one.
            second.cancel(ANN)
        assert (await here.fact(CallSettled, calls[1])).by == "ann"
        assert (await ended(here, first)).cancelled_by is None
        assert (await ended(here, second)).cancelled_calls == (calls[1].id,)


async def test_a_late_call_for_an_operation_that_has_ended_is_not_run(tmp_path: Path) -> None:
    tool = Echo("write")
    async with gate_world(tmp_path, tool, default="allow") as here:
        async with here.gate.operation(caller()) as operation:
            operation.cancel(ANN)
            during = here.client("echo", caller=caller(operation=operation.id))
        after = await here.submit("echo", caller=caller(operation=operation.id))
        for reply in (await during.reply(), after):
            assert reply.outcome is not None
            assert (reply.outcome.ending, str(reply.outcome.by)) == ("cancelled", "operation")
            assert "nothing was run" in reply.outcome.message
        assert tool.runs == []


async def test_rapid_successive_operations_leave_nothing_behind(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        for turn in range(20):
            async with here.gate.operation(caller()) as operation:
                here.client("patient", {"word": str(turn)}, caller=caller(operation=operation.id))
                await anyio.lowlevel.checkpoint()
                operation.cancel(ANN)
        await anyio.wait_all_tasks_blocked()
        facts = await here.facts()
        assert here.gate.open == here.gate.operations == {}
        for kind in (OperationOpened, OperationEnded):
            assert sum(isinstance(fact, kind) for fact in facts) == 20
