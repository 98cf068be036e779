"""An agent asks a person to fill in a form, and gets their values, their no, or word that nobody answered."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.support.acp_requests import RequestingAgent, requesting_agent
from tests.support.actors import ANN

from handrail.agents.requests.handlers import form_answer
from handrail.agents.requests.request_context import BAD_PARAMS
from handrail.gate import person_actions
from handrail.gate.call import Outcome
from handrail.gate.tool import Refusal
from handrail.store.values import Caller, FormPreview, Json

pytestmark = pytest.mark.anyio

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2},
        "count": {"type": "integer", "minimum": 1},
        "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}},
    },
    "required": ["name"],
}
FORM: dict[str, Any] = {"mode": "form", "message": "Which one?", "requestedSchema": SCHEMA, "toolCallId": "9"}


def filled(**values: Any) -> dict[str, Any]:
    """A person's answer."""
    return {"input": {"message": "Which one?", "form": SCHEMA, "values": values}}


@pytest.fixture
async def here(home: Path, caller: Caller) -> AsyncGenerator[RequestingAgent]:
    async with requesting_agent(home, caller, agrees=False) as found:
        yield found


async def test_the_agent_gets_what_the_person_filled_in(here: RequestingAgent) -> None:
    values = {"name": "Ann", "count": 3, "colours": ["red"]}
    told = await here.both("elicitation/create", filled(**values), **FORM)
    assert told == {"action": "accept", "content": values}
    [call] = await here.opened()
    assert (call.tool, call.title, call.assurance) == ("agent_form", "Which one?", "advisory")
    assert here.asked == [("9", call.call)]


async def test_the_person_sees_the_form_as_the_agent_sent_it(here: RequestingAgent) -> None:
    seen: list[object] = []

    async def looks() -> None:
        approval = await here.question()
        seen.append(approval.asked.preview)
        person_actions.cancel(here.gate, here.gate.open[approval.call], ANN)

    await here.meanwhile(looks, "elicitation/create", **FORM)
    assert seen == [FormPreview(message="Which one?", schema=SCHEMA)]


async def test_values_that_do_not_fit_are_sent_back_to_the_person_and_not_to_the_agent(
    here: RequestingAgent,
) -> None:
    problems: list[str] = []

    async def fills_in() -> None:
        approval = await here.question()
        call = here.gate.open[approval.call]
        for wrong in ({"name": "A"}, {"name": "Ann", "colours": ["blue"]}):
            with pytest.raises(Refusal) as caught:
                await person_actions.edit(here.gate, call, filled(**wrong)["input"])
            problems.append(caught.value.sentence)
        here.seen.clear()
        await here.answers(**filled(name="Ann"))

    told = await here.meanwhile(fills_in, "elicitation/create", **FORM)
    assert told == {"action": "accept", "content": {"name": "Ann"}}
    assert problems == [
        "This is not what is asked for: Name must have at least 2 characters.",
        "This is not what is asked for: `colours` may only hold: red, green.",
    ]


async def test_a_person_who_will_not_answer_declines(here: RequestingAgent) -> None:
    assert await here.both("elicitation/create", {"kind": "deny"}, **FORM) == {"action": "decline"}


async def test_a_cancelled_question_is_cancelled(here: RequestingAgent) -> None:
    async def cancels() -> None:
        person_actions.cancel(here.gate, here.gate.open[(await here.question()).call], ANN)

    assert await here.meanwhile(cancels, "elicitation/create", **FORM) == {"action": "cancel"}
    approval = await here.given_up("elicitation/create", **FORM)
    assert not approval.open


@pytest.mark.parametrize("ending", ["failed", "interrupted", "completed", "cancelled"])
def test_whatever_nobody_answered_is_cancelled(ending: Any) -> None:
    assert form_answer(Outcome(ending=ending, by=ANN)) == {"action": "cancel"}
    assert form_answer(None) == {"action": "cancel"}


async def test_a_form_without_fields_asks_for_a_yes(here: RequestingAgent) -> None:
    bare = {"message": "Go on?", "requestedSchema": {"type": "object"}}
    told = await here.both("elicitation/create", {"kind": "allow"}, **bare)
    assert told == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"mode": "url", "url": "https://x.org", "message": "?"}, "no elicitation of mode url"),
        ({"mode": "_telepathy", "message": "?"}, "no elicitation of mode _telepathy"),
        ({"mode": "form", "message": "?"}, "needs a `requestedSchema`"),
        ({"message": "?", "requestedSchema": {"properties": []}}, "needs a `requestedSchema`"),
    ],
)
async def test_what_cannot_be_asked_is_a_clear_error(
    here: RequestingAgent, odd: dict[str, Any], said: str
) -> None:
    error = await here.fails("elicitation/create", **odd)
    assert error.code == BAD_PARAMS
    assert said in str(error)
    assert await here.opened() == []
