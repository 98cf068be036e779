"""The answer of another server, held back until a person has seen it."""

from pathlib import Path

from pydantic import BaseModel
from tests.support.gate_world import full_disk, gate_world, make_answer

from handrail.gate import person_actions
from handrail.gate.tool import CallReport, Plan, Tool
from handrail.store.actor import PERSON
from handrail.store.values import Caller, Claim, Json, Result, ResultPreview

ANSWER: Json = {"result": {"content": [{"type": "text", "text": "secret"}]}}


class Nothing(BaseModel):
    """No input."""


class Asked(Tool[Nothing, Plan]):
    """Gets an answer of a server, which a person reviews."""

    name, title, description = "far__asked", "Asked", "Asks a server."
    input, output = Nothing, Nothing
    assurance = "forwarded"

    def display(self, input: Nothing) -> str:
        return "Asked"

    async def plan(self, input: Nothing, caller: Caller) -> Plan:
        return Plan(
            claims=(Claim(action="run", resource="far asked", inside=True),), bound={}, reviews_result=True
        )

    async def run(self, plan: Plan, call: CallReport) -> Result:
        call.relay(ANSWER)
        return Result(text="secret", data={})

    def preview_answer(self, answer: Json) -> ResultPreview:
        return ResultPreview(server="far", text="secret")


async def test_an_answer_is_at_hand_only_after_a_person_passed_it_on(home: Path) -> None:
    async with gate_world(home, Asked(), default="allow") as world:
        client = world.client("far__asked")
        call = await client.call()
        approval = await world.question(call)
        held = (call.status, call.relayed)
        await person_actions.answer(world.gate, approval, make_answer("allow"), approval.digest)
        reply = await client.reply()

    assert held == ("waiting", None)
    assert reply.outcome is not None
    assert (reply.outcome.ending, call.relayed) == ("done", ANSWER)


async def test_an_answer_is_withheld_if_nobody_looks_at_it_in_time(home: Path) -> None:
    async with gate_world(home, Asked(), default="allow", expire_seconds=0.05) as world:
        reply = await world.submit("far__asked")

    assert reply.outcome is not None
    assert (reply.outcome.ending, reply.outcome.result, reply.call.relayed) == ("failed", None, None)
    assert "has run" in reply.outcome.message


async def test_an_answer_is_withheld_if_the_question_cannot_be_recorded(home: Path) -> None:
    async with gate_world(home, Asked(), default="allow", checked=False) as world:
        with full_disk(home, "ApprovalOpened"):
            reply = await world.submit("far__asked")

    assert reply.outcome is not None
    assert reply.call.relayed is None
    assert reply.outcome.result is None


async def test_a_text_of_a_person_ends_the_call_and_its_wait_for_a_review(home: Path) -> None:
    async with gate_world(home, Asked(), default="allow") as world:
        client = world.client("far__asked")
        call = await client.call()
        await world.question(call)
        person_actions.complete(world.gate, call, PERSON, text="Enough.")
        reply = await client.reply()
        is_over = call.scope.cancel_called

    assert is_over
    assert reply.outcome is not None
    assert (reply.outcome.ending, call.relayed) == ("completed", None)
