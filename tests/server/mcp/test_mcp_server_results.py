"""A reply in the dialect of MCP: one shape for every ending, and the same facts in text and data."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from mcp_types.methods import serialize_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel

from handrail.gate.approval import Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Reply
from handrail.gate.pipeline import expired_outcome
from handrail.gate.tool import CallReport, Image, Plan, Tool
from handrail.server.mcp.mcp_server import to_wire
from handrail.server.mcp.tool_results import output_schema, refused_result, to_result
from handrail.store.actor import HANDRAIL, PERSON, actor_from_text, rule_actor
from handrail.store.events import ApprovalOpened
from handrail.store.journal import open_journal
from handrail.store.values import Caller, Ending, Json, Result

CALLER = Caller(door="stdio", client="test", key="test", workspace=None)


class Nothing(BaseModel):
    """A tool that is asked nothing."""


class Fruit(BaseModel):
    fruit: str | None = None


class Tree(Tool[Nothing, Plan]):
    name, title, description = "tree", "Tree", "Bears fruit."
    input, output = Nothing, Fruit

    def display(self, input: Nothing) -> str:
        return "Tree"

    async def plan(self, input: Nothing, caller: Caller) -> Plan:
        return Plan(claims=(), bound={})

    async def run(self, plan: Plan, call: CallReport) -> Result:
        return Result(text="an apple", data={"fruit": "apple"})


SCHEMA = Draft202012Validator(output_schema(Tree()))


@pytest.fixture
async def call(home: Path) -> AsyncGenerator[Call]:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        yield Call.open(journal, "tree", "Tree", {}, CALLER)


def facts(result: types.CallToolResult) -> dict[str, Any]:
    data: Any = result.structured_content
    SCHEMA.validate(data)  # pyright: ignore[reportUnknownMemberType]
    return data


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("ending", get_args(Ending))
@pytest.mark.parametrize("data", [None, {"fruit": "apple"}])
async def test_every_ending_fits_the_schema_with_or_without_a_result(
    call: Call, ending: Ending, data: Json | None
) -> None:
    result = Result(text="an apple", data=data) if data else None
    outcome = Outcome(ending=ending, by=PERSON, message="because", result=result)
    call.settle(outcome)

    told = to_result(Reply(call=call, outcome=outcome))

    assert facts(told)["status"] == ("force-completed" if ending == "completed" else ending)
    assert facts(told)["call_id"] == call.id
    assert facts(told)["receipt"]["ended_by"] == "a person"
    assert told.is_error is (ending in ("failed", "denied", "cancelled", "interrupted"))
    if ending != "done":
        assert "because" in text(told)
    if data and ending != "denied":
        assert facts(told)["fruit"] == "apple"
        assert "an apple" in text(told)


@pytest.mark.parametrize("repeated", [False, True])
async def test_a_call_that_goes_on_names_itself_and_what_there_is(call: Call, repeated: bool) -> None:
    so_far = Result(text="a pear", data={"fruit": "pear"})
    told = to_result(Reply(call=call, outcome=None, repeated=repeated), so_far)

    assert (facts(told)["status"], told.is_error) == ("running", False)
    assert facts(told)["fruit"] == "pear"
    assert call.id in text(told)
    assert "a pear" in text(told)
    assert ("not started again" in text(told)) is repeated


async def test_a_call_that_waits_for_input_says_so_and_what_to_do(call: Call) -> None:
    question: Json = {"prompt": "Name?", "sure": "certain", "secret": False, "advice": "Answer it."}
    so_far = Result(text="a pear", data={"fruit": "pear", "waiting_for_input": question})
    told = to_result(Reply(call=call, outcome=None), so_far)

    assert (facts(told)["status"], told.is_error) == ("waiting_for_input", False)
    assert facts(told)["waiting_for_input"]["prompt"] == "Name?"
    assert text(told) == "Answer it.\n\nSo far:\na pear"


def test_a_call_that_could_not_be_recorded_says_so() -> None:
    told = refused_result("tree", "The disk is full, so nothing was run.")

    assert (facts(told)["status"], told.is_error) == ("failed", True)
    assert text(told) == "The disk is full, so nothing was run."


async def test_an_image_is_sent_as_a_block_beside_the_text(call: Call) -> None:
    call.show_image(Image("image/png", b"\x89PNG"))
    outcome = Outcome(ending="done", by=PERSON, result=Result(text="an apple", data={"fruit": "apple"}))
    call.settle(outcome)
    told = to_result(Reply(call=call, outcome=outcome))

    assert told.content == [
        types.TextContent(type="text", text="an apple"),
        types.ImageContent(type="image", data="iVBORw==", mime_type="image/png"),
    ]
    dumped = told.model_dump(by_alias=True, mode="json", exclude_none=True)
    assert to_wire(told)["content"] == dumped["content"]
    assert facts(told)["fruit"] == "apple"


async def test_codex_gets_an_image_without_structured_content_which_it_would_show_instead(call: Call) -> None:
    call.caller = replace(CALLER, client="codex-mcp-client")
    outcome = Outcome(ending="done", by=PERSON, result=Result(text="an apple", data={"fruit": "apple"}))
    call.settle(outcome)
    without_image = to_result(Reply(call=call, outcome=outcome))
    call.show_image(Image("image/png", b"\x89PNG"))
    told = to_result(Reply(call=call, outcome=outcome))

    assert facts(without_image)["fruit"] == "apple"
    assert [block.type for block in told.content] == ["text", "image"]
    assert "structuredContent" not in to_wire(told)


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
async def test_a_result_has_the_bytes_that_the_sdk_would_send(call: Call, version: str) -> None:
    result = Result(text="an apple ☂", data={"fruit": None, "seeds": [1, {"sour": None}]})
    outcome = Outcome(ending="done", by=PERSON, result=result)
    call.settle(outcome)
    told = to_result(Reply(call=call, outcome=outcome))

    dumped = told.model_dump(by_alias=True, mode="json", exclude_none=True)
    expected = serialize_server_result("tools/call", version, dumped)
    assert json.dumps(to_wire(told)) == json.dumps(expected)


async def test_a_denial_without_a_reason_says_that_there_is_none(call: Call) -> None:
    outcome = Outcome(ending="denied", by=PERSON)
    call.settle(outcome)

    assert "No reason was given" in text(to_result(Reply(call=call, outcome=outcome)))


@pytest.mark.parametrize("ending", get_args(Ending))
async def test_what_a_person_changed_and_said_is_told_however_the_call_ended(
    call: Call, ending: Ending
) -> None:
    call.edited = {"size": 2}
    call.said = "smaller"
    call.settle(
        Outcome(
            ending=ending, by=actor_from_text("tree"), result=Result(text="an apple", data={"fruit": "apple"})
        )
    )

    told = to_result(Reply(call=call, outcome=call.outcome))

    assert facts(told)["edited"] == {"input": {"size": 2}, "asked": {}}
    assert facts(told)["person_says"] == "smaller"
    if ending == "done":
        assert text(told) == (
            "A person changed this call before allowing it: `size` was added: 2.\n"
            "The person who allowed it says: smaller\n\nan apple"
        )
    elif ending != "denied":
        assert "A person changed this call" in text(told)


async def test_a_call_that_nobody_answered_for_has_expired_and_was_not_denied(call: Call) -> None:
    asked = ApprovalOpened(
        approval="a1",
        call=call.id,
        digest="0" * 64,
        claims=(),
        risk="low",
        reasons=(),
        why="",
        preview=None,
    )
    call.approval = Approval(call.journal, asked)
    call.approval.expire()
    outcome = expired_outcome(30_000)
    call.settle(outcome)

    told = to_result(Reply(call=call, outcome=outcome))

    assert (facts(told)["status"], facts(told)["reason"]) == ("failed", "expired")
    assert text(told).startswith("Expired: nobody answered within 30 s. Nothing was run")


async def test_a_denial_by_a_rule_names_it_and_says_why(call: Call) -> None:
    why = "Rule r1 refuses `git push …` in this project. Ask Ann first."
    outcome = Outcome(ending="denied", by=rule_actor("r1"), message=why)
    call.settle(outcome)

    told = to_result(Reply(call=call, outcome=outcome))

    assert text(told) == f"Denied by rule r1. Reason: {why} Nothing was run."
    assert facts(told)["reason"] == why


async def test_how_a_file_changed_meanwhile_is_told_in_words_and_data(call: Call) -> None:
    result = Result(text="-old\n+new", data={"difference": "-old\n+new"})
    outcome = Outcome(ending="failed", by=HANDRAIL, message="It changed.", result=result)
    call.settle(outcome)

    told = to_result(Reply(call=call, outcome=outcome))

    assert text(told) == "It changed.\n\n-old\n+new"
    assert facts(told)["difference"] == "-old\n+new"
