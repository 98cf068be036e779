"""Clients that lose patience, ask again or go away: no call hangs one, none is run twice, none is lost."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.gate_world import Client, caller, gate_world, make_answer, request
from tests.support.sample_tools import (
    Background,
    Echo,
    Patient,
    Planner,
    Printer,
    Stubborn,
    Write,
    word_result,
)

from handrail.gate import person_actions
from handrail.store.events import ApprovalWithdrawn, CallHandedBack, CallSettled, CallStopped
from handrail.store.values import Json

pytestmark = pytest.mark.anyio


async def test_a_call_that_outlasts_the_clients_patience_is_handed_back_and_filed_later(
    tmp_path: Path,
) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        reply = await here.submit("patient", {"word": "late"}, patience=0)
        call = reply.call
        assert (reply.outcome, reply.repeated, call.status) == (None, False, "running")
        await here.fact(CallHandedBack, call)
        assert call.id in here.gate.open
        await tool.started.wait()
        tool.go.set()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.result) == ("done", word_result("late"))
        assert here.gate.open == {}
        kinds = await here.kinds(call)
        assert (kinds[0], sorted(kinds[1:3]), kinds[3:]) == (
            "CallOpened",
            ["CallHandedBack", "CallStarted"],
            ["CallSettled"],
        )


async def test_time_spent_waiting_for_a_person_counts_as_patience(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write", patience=0.05)
        call = await client.call()
        approval = await here.question(call)
        reply = await client.reply()
        assert (reply.outcome, call.status, call.handed_back) == (None, "waiting", True)
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, tool.runs) == ("done", ["hello"])


async def test_the_patience_in_the_input_counts_more_than_the_clients(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        reply = await here.submit("patient", {"patience": 0.0})
        assert reply.outcome is None
        person_actions.cancel(here.gate, reply.call, ANN)


async def test_the_clients_limit_counts_more_than_the_patience_in_the_input(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        asked = replace(request("patient", {"patience": 100.0}), patience_max=0.05)
        reply = await here.gate.submit(asked)
        assert (reply.outcome, reply.asked_wait, reply.call.patience) == (None, 100.0, 0.05)
        person_actions.cancel(here.gate, reply.call, ANN)


async def test_a_call_handed_back_for_another_reason_does_not_blame_the_limit(tmp_path: Path) -> None:
    tool = Background()
    async with gate_world(tmp_path, tool) as here:
        asked = replace(request("background", {"patience": 100.0}), patience_max=50.0)
        reply = await here.gate.submit(asked)
        assert (reply.outcome, reply.asked_wait) == (None, None)
        person_actions.cancel(here.gate, reply.call, ANN)


async def test_a_call_that_differs_only_in_how_it_is_answered_is_the_same_call(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        first = await here.submit("patient", {"word": "a", "patience": 0})
        other: list[Json] = [
            {"word": "a", "patience": 9},
            {"word": "a"},
            {"word": "a", "reason": "once more"},
        ]
        for changed in other:
            again = await here.submit("patient", changed)
            assert (again.call.id, again.repeated) == (first.call.id, True)
        assert (await here.submit("patient", {"word": "b"}, patience=0)).repeated is False
        for call in list(here.gate.open.values()):
            person_actions.cancel(here.gate, call, ANN)


async def test_a_handed_back_call_can_be_cancelled(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        reply = await here.submit("patient", patience=0)
        await tool.started.wait()
        assert person_actions.cancel(here.gate, reply.call, ANN)
        await here.fact(CallStopped, reply.call)
        assert (await here.fact(CallSettled, reply.call)).ending == "cancelled"
        assert tool.tidied == 1


async def test_a_tool_can_hand_its_call_back_by_itself_once(tmp_path: Path) -> None:
    tool = Background()
    async with gate_world(tmp_path, tool) as here:
        reply = await here.submit("background")
        assert (reply.outcome, reply.call.status) == (None, "running")
        assert (await here.kinds(reply.call)).count("CallHandedBack") == 1
        tool.go.set()
        settled = await here.fact(CallSettled, reply.call)
        assert settled.ending == "done"
        assert (await here.kinds(reply.call)).count("CallHandedBack") == 1


async def test_the_hand_back_is_on_record_before_the_client_is_told(tmp_path: Path) -> None:
    tool = Background()
    async with gate_world(tmp_path, tool) as here:
        reply = await here.submit("background")
        assert 0 < reply.call.handed_back_seq <= here.journal.durable
        person_actions.cancel(here.gate, reply.call, ANN)


async def test_a_call_that_ends_while_it_is_handed_back_is_told_as_ended(tmp_path: Path) -> None:
    """The patience is over, and the call settles while the hand-back is being written down."""
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient", patience=0)
        call = await client.call()
        while not call.handed_back:
            await anyio.lowlevel.checkpoint()
        assert not client.ended.is_set(), "the hand-back is not on record yet"
        person_actions.cancel(here.gate, call, ANN)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "cancelled"
        assert call.settled_seq <= here.journal.durable


async def test_the_same_client_asking_again_gets_the_call_that_is_open(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        first = await here.submit("patient", {"word": "a", "count": 2}, patience=0)
        await tool.started.wait()
        again = await here.submit("patient", {"count": 2, "word": "a"})
        assert (again.call.id, again.repeated, again.outcome) == (first.call.id, True, None)
        assert tool.runs == ["a"]
        tool.go.set()
        await here.fact(CallSettled, first.call)
        once_more = await here.submit("patient", {"word": "a", "count": 2})
        assert once_more.call.id != first.call.id, "what has ended may be asked for again"
        assert once_more.repeated is False


@pytest.mark.parametrize(
    ("client", "word"), [("two", "a"), ("one", "b")], ids=["another client", "another input"]
)
async def test_another_client_or_another_input_is_another_call(
    tmp_path: Path, client: str, word: str
) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        first = await here.submit("patient", {"word": "a"}, patience=0)
        second = await here.submit("patient", {"word": word}, patience=0, caller=caller(client))
        assert (second.call.id != first.call.id, second.repeated) == (True, False)
        tool.go.set()
        await here.fact(CallSettled, first.call)
        await here.fact(CallSettled, second.call)
        assert sorted(tool.runs) == sorted(["a", word])


async def test_two_equal_calls_whose_client_waits_for_both_are_two_calls(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        clients = [here.client("patient"), here.client("patient")]
        ids = {(await client.call()).id for client in clients}
        tool.go.set()
        replies = [await client.reply() for client in clients]
        assert {reply.call.id for reply in replies} == ids
        assert len(ids) == len(tool.runs) == 2


async def test_a_tool_that_is_meant_to_repeat_is_run_again(tmp_path: Path) -> None:
    class Waiter(Patient):
        repeats = True

    tool = Waiter()
    async with gate_world(tmp_path, tool) as here:
        first = await here.submit("patient", patience=0)
        second = await here.submit("patient", patience=0)
        assert first.call.id != second.call.id
        tool.go.set()
        await here.fact(CallSettled, first.call)
        await here.fact(CallSettled, second.call)


async def test_a_client_that_goes_away_cancels_the_call_it_waits_for(tmp_path: Path) -> None:
    tool = Printer()
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = here.client("printer")
        call = await client.call()
        await tool.started.wait()
        client.hang_up()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.by) == ("cancelled", "client")
        assert settled.result == word_result("so far")
        await here.fact(CallStopped, call)
        assert tool.tidied == 1
        assert client.replies == []


async def test_a_client_that_goes_away_withdraws_its_question(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        await here.question(call)
        client.hang_up()
        assert (await here.fact(ApprovalWithdrawn, call)).why == "the call was cancelled by client"
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.by, tool.runs) == ("cancelled", "client", [])


async def test_a_client_that_goes_away_as_its_call_is_planned_leaves_no_question_open(tmp_path: Path) -> None:
    tool = Planner("write")
    async with gate_world(tmp_path, tool) as here:
        client = here.client("planner")
        call = await client.call()
        await tool.planning.wait()
        client.hang_up()
        tool.planned.set()
        await here.fact(CallSettled, call)
        await client.ended.wait()
        await here.fact(CallStopped, call)
        kinds = await here.kinds(call)
        assert kinds.count("ApprovalOpened") == kinds.count("ApprovalWithdrawn")
        assert tool.runs == []


async def test_a_client_that_goes_away_after_the_hand_back_cancels_nothing(tmp_path: Path) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient", patience=0)
        reply = await client.reply()
        client.hang_up()
        await tool.started.wait()
        tool.go.set()
        assert (await here.fact(CallSettled, reply.call)).ending == "done"


async def test_a_call_that_is_handed_back_in_the_tick_in_which_its_client_goes_goes_on(
    tmp_path: Path,
) -> None:
    tool = Patient()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("patient")
        call = await client.call()
        await tool.started.wait()
        client.hang_up()
        call.hand_back()
        await client.ended.wait()
        assert (client.replies, call.status) == ([], "running")
        tool.go.set()
        assert (await here.fact(CallSettled, call)).ending == "done"


async def test_a_client_that_goes_away_from_a_settled_call_changes_nothing(tmp_path: Path) -> None:
    tool = Stubborn()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("stubborn")
        call = await client.call()
        await tool.started.wait()
        person_actions.cancel(here.gate, call, ANN)
        client.hang_up()
        await client.ended.wait()
        tool.go.set()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.by) == ("cancelled", "ann")
        await here.fact(CallStopped, call)


async def test_a_client_that_is_gone_before_its_call_began_leaves_a_record_and_runs_nothing(
    tmp_path: Path,
) -> None:
    tool = Echo("write")
    async with gate_world(tmp_path, tool, default="allow") as here:
        client = Client()
        client.hang_up()
        await client.run(here.gate, request("echo"))
        call = await client.call()
        await here.fact(CallStopped, call)
        assert (await here.fact(CallSettled, call)).ending == "cancelled"
        assert tool.runs == []
