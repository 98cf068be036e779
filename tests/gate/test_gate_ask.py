"""An agent asks about work of its own: the same rules and the same inbox, nothing run here, and nobody left waiting."""

from pathlib import Path

import pytest
from tests.gate.test_restore import crash, take_over
from tests.support.actors import ANN
from tests.support.gate_world import Client, GateWorld, caller, gate_world, make_answer, request, rule
from tests.support.sample_tools import Echo, ToyInput, ToyPlan, Write

from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.gate import STOPPED_ASKING, Gate, Request
from handrail.gate.restore import WITHDRAWN, Restored
from handrail.gate.tool import NO_EDITS, Refusal
from handrail.store.events import ApprovalOpened, ApprovalWithdrawn, CallOpened, CallSettled
from handrail.store.records import open_records
from handrail.store.values import Caller, Effect

pytestmark = pytest.mark.anyio


class Wish(Echo):
    """Work that whoever asks does themselves."""

    name = "wish"
    assurance = "advisory"
    listed = False
    edits = False

    def __init__(self) -> None:
        super().__init__("write")


class Form(Echo):
    """Only a person can answer it."""

    name = "form"
    assurance = "advisory"

    async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
        return ToyPlan(claims=(), bound={}, word=input.word, asks="It asks you.")


class Asker(Client):
    """An agent that asks, and waits for the answer."""

    async def run(self, gate: Gate, request: Request) -> None:
        try:
            with self._scope:
                self.replies.append(await gate.ask(request, self._on_opened))
        finally:
            self.ended.set()


def asker(here: GateWorld, tool: str = "wish", word: str = "a", who: Caller | None = None) -> Asker:
    """Whatever patience it names, it waits."""
    asks = Asker()
    here.group.start_soon(asks.run, here.gate, request(tool, {"word": word}, who or caller(), patience=0))
    return asks


async def test_a_rule_may_answer_and_then_nobody_is_asked(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        await here.rules.add(rule(tool="wish"), ANN)
        reply = await asker(here).reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "done"
        assert await here.kinds(reply.call) == ["CallOpened", "CallStarted", "CallSettled"]


async def test_the_record_says_that_it_is_only_the_agents_word(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish(), Write(), default="allow") as here:
        asked = (await asker(here).reply()).call
        done = (await here.submit("write")).call
        assert (await here.fact(CallOpened, asked)).assurance == "advisory"
        assert (await here.fact(CallOpened, done)).assurance == "bound"


async def test_a_question_is_waited_for_whatever_the_patience(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        asks = asker(here)
        call = await asks.call()
        approval = await here.question(call)
        assert not call.handed_back
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        outcome = (await asks.reply()).outcome
        assert outcome is not None
        assert outcome.ending == "done"


async def test_a_denial_comes_with_its_reason(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        asks = asker(here)
        approval = await here.question(await asks.call())
        await person_actions.answer(
            here.gate, approval, make_answer("deny", reason="use make"), approval.digest
        )
        outcome = (await asks.reply()).outcome
        assert outcome is not None
        assert (outcome.ending, outcome.message) == ("denied", "use make")


async def test_asking_the_same_twice_is_two_questions(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        first, second = asker(here), asker(here)
        calls = {(await first.call()).id, (await second.call()).id}
        assert len(calls) == 2
        assert set(here.gate.open) == calls


async def test_a_tool_that_is_asked_about_cannot_be_called_and_is_not_told_of(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish(), Write(), default="allow") as here:
        reply = await here.submit("wish")
        assert reply.outcome is not None
        assert reply.outcome.message == "There is no tool named 'wish'. Use one of: write."


async def test_a_tool_of_ours_is_not_run_by_asking(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, Wish(), tool, default="allow") as here:
        reply = await asker(here, "write").reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "failed"
        assert tool.runs == []


async def test_an_edit_is_refused_with_the_reason_and_the_question_stays(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        call = await asker(here).call()
        approval = await here.question(call)
        with pytest.raises(Refusal, match=NO_EDITS[:40]):
            await person_actions.edit(here.gate, call, {"word": "b"})
        edited = Answer(kind="allow", by=ANN, input={"word": "b"})
        with pytest.raises(Refusal, match=NO_EDITS[:40]):
            await person_actions.answer(here.gate, approval, edited, approval.digest)
        assert approval.open


async def test_the_same_input_sent_back_is_no_edit(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        asks = asker(here)
        call = await asks.call()
        approval = await here.question(call)
        edit = await person_actions.edit(here.gate, call, {"word": "a"})
        same = Answer(kind="allow", by=ANN, input={"word": "a"})
        await person_actions.answer(here.gate, approval, same, edit.digest)
        outcome = (await asks.reply()).outcome
        assert outcome is not None
        assert outcome.ending == "done"


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
async def test_what_only_a_person_can_answer_is_asked_whatever_the_rules_say(
    tmp_path: Path, default: Effect
) -> None:
    async with gate_world(tmp_path, Form(), default=default) as here:
        await here.rules.add(rule(tool="form"), ANN)
        call = await asker(here, "form").call()
        approval = await here.question(call)
        asked = await here.fact(ApprovalOpened, call)
        assert (asked.why, asked.risk) == ("It asks you.", "low")
        await here.rules.add(rule("deny", id="r2", tool="form"), ANN)
        assert approval.open


async def test_an_agent_that_hangs_up_withdraws_its_question(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        asks = asker(here)
        call = await asks.call()
        await here.question(call)
        asks.hang_up()
        assert (await here.fact(CallSettled, call)).ending == "cancelled"
        await here.fact(ApprovalWithdrawn, call)


async def test_the_end_of_its_operation_withdraws_it(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        async with here.gate.operation(caller()) as operation:
            asks = asker(here, who=operation.caller)
            call = await asks.call()
            await here.question(call)
            operation.cancel(ANN)
        outcome = (await asks.reply()).outcome
        assert outcome is not None
        assert (outcome.ending, str(outcome.by)) == ("cancelled", "ann")
        await here.fact(ApprovalWithdrawn, call)


async def test_a_daemon_that_leaves_withdraws_it(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish()) as here:
        asks = asker(here)
        call = await asks.call()
        await here.question(call)
        here.gate.leave()
        outcome = (await asks.reply()).outcome
        assert outcome is not None
        assert (outcome.ending, outcome.message) == ("interrupted", STOPPED_ASKING)
        await here.fact(ApprovalWithdrawn, call)


async def test_the_next_daemon_does_not_take_it_up_again(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Wish(), Write()) as here:
        asked, ours = await asker(here).call(), await here.client("write").call()
        await here.question(asked)
        await here.question(ours)
        after = crash(tmp_path, tmp_path / "after")
    async with gate_world(after, Wish(), Write()) as here:
        assert await take_over(here) == Restored(interrupted=1, approvals_kept=1)
        assert set(here.gate.open) == {ours.id}
        settled = await here.fact(CallSettled, asked)
        assert (settled.ending, settled.message, settled.receipt.stopped) == ("interrupted", WITHDRAWN, True)
        await here.fact(ApprovalWithdrawn, asked)
        async with open_records(after / "handrail.db") as records:
            assert [record.call for record in await records.approvals.find(open_only=True)] == [ours.id]
