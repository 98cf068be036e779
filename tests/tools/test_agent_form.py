"""A form is put to a person, whose values are checked before they count and told to nobody but the agent that asked."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.tool_runner import BOUND, ToolRunner

from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Call
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Refusal
from handrail.store.journal import open_journal
from handrail.store.values import Caller, FormPreview, Json
from handrail.tools.agent_form import ASKS, AgentForm

pytestmark = pytest.mark.anyio

FORM: Json = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer", "minimum": 1, "default": 2}},
    "required": ["name"],
}
ASKED: Json = {"message": "Which one?", "form": FORM}


@pytest.fixture
async def forms(home: Path, caller: Caller) -> AsyncGenerator[ToolRunner]:
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        anyio.create_task_group() as group,
    ):
        rules = Rules.with_default(journal, "allow", trusted=[caller.workspace or "/"])
        yield ToolRunner(Gate(journal, rules, {"agent_form": AgentForm()}, group), Path("/"), caller)
        group.cancel_scope.cancel()


async def asked(
    desk: ToolRunner, replies: list[Reply], group: anyio.abc.TaskGroup, input: Json = ASKED
) -> Call:
    """A form that waits for the person."""
    calls: list[Call] = []

    async def ask() -> None:
        request = Request(tool="agent_form", input=input, caller=desk.caller, patience=0)
        replies.append(await desk.gate.ask(request, calls.append))

    group.start_soon(ask)
    while not (calls and calls[0].approval):
        await anyio.lowlevel.checkpoint()
    return calls[0]


def filled(values: Json) -> Json:
    return {**ASKED, "values": values}


async def test_the_person_sees_the_form_whatever_is_allowed_and_the_agent_gets_the_values(
    forms: ToolRunner,
) -> None:
    replies: list[Reply] = []
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            call = await asked(forms, replies, group)
            assert call.approval is not None
            assert call.approval.asked.preview == FormPreview(message="Which one?", schema=FORM)
            assert (call.approval.asked.why, call.title) == (ASKS, "Which one?")
            edit = await person_actions.edit(forms.gate, call, filled({"name": "x", "count": 3}))
            given = Answer(kind="allow", by=ANN, input=filled({"name": "x", "count": 3}))
            await person_actions.answer(forms.gate, call.approval, given, edit.digest)
    outcome = replies[0].outcome
    assert outcome is not None
    assert outcome.result is not None
    assert outcome.ending == "done"
    assert outcome.result.data["values"] == {"name": "x", "count": 3}


async def test_values_that_are_not_asked_for_are_refused_and_the_question_stays(forms: ToolRunner) -> None:
    async with anyio.create_task_group() as group:
        call = await asked(forms, [], group)
        assert call.approval is not None
        with pytest.raises(Refusal, match="`name` is required; `count` must be at least 1"):
            await person_actions.edit(forms.gate, call, filled({"count": 0}))
        wrong = Answer(kind="allow", by=ANN, input=filled({"name": 7}))
        with pytest.raises(Refusal, match="`name` must be text"):
            await person_actions.answer(forms.gate, call.approval, wrong, call.approval.digest)
        assert call.approval.open
        group.cancel_scope.cancel()


async def test_a_form_that_is_allowed_as_it_came_gives_its_defaults(forms: ToolRunner) -> None:
    replies: list[Reply] = []
    optional: Json = {"message": "?", "form": {**FORM, "required": []}}
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            call = await asked(forms, replies, group, optional)
            assert call.approval is not None
            allowed = Answer(kind="allow", by=ANN)
            await person_actions.answer(forms.gate, call.approval, allowed, call.approval.digest)
    outcome = replies[0].outcome
    assert outcome is not None
    assert outcome.result is not None
    assert outcome.result.data["values"] == {"count": 2}


async def test_a_form_with_nothing_in_a_required_field_is_not_answered(forms: ToolRunner) -> None:
    replies: list[Reply] = []
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            call = await asked(forms, replies, group)
            assert call.approval is not None
            allowed = Answer(kind="allow", by=ANN)
            await person_actions.answer(forms.gate, call.approval, allowed, call.approval.digest)
    outcome = replies[0].outcome
    assert outcome is not None
    assert (outcome.ending, outcome.message) == (
        "failed",
        "This is not what is asked for: `name` is required.",
    )


async def test_a_form_is_not_answered_together_with_what_is_of_low_risk(forms: ToolRunner) -> None:
    async with anyio.create_task_group() as group:
        call = await asked(forms, [], group)
        assert call.approval is not None
        told = await person_actions.allow_low(forms.gate, [(call.approval, call.approval.digest)], ANN)
        assert [(each.won, each.message) for each in told] == [(False, f"{ASKS} Answer it by itself.")]
        assert call.approval.open
        group.cancel_scope.cancel()
