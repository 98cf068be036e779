"""What a person fills in is held against what the agent asked for; each problem is said in words."""

import random
import time
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import BOUND

from handrail.store.values import Json
from handrail.tools import agent_form
from handrail.tools.agent_form import find_problem, form_defaults

pytestmark = pytest.mark.anyio


def form(field: Json, *required: str) -> Json:
    return {"type": "object", "properties": {"f": field}, "required": list(required)}


async def why(field: Json, value: Any) -> str:
    """The problem with one value, without what all such sentences share."""
    told = await find_problem(form(field), {"f": value})
    return told.removeprefix("This is not what is asked for: `f` ").removesuffix(".")


CHOICES: Json = {"type": "string", "enum": ["red", "green"]}
TITLED: Json = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
SEVERAL: Json = {
    "type": "array",
    "items": {"type": "string", "enum": ["a", "b", "c"]},
    "minItems": 1,
    "maxItems": 2,
}
SEVERAL_TITLED: Json = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "äö"),
        ({"type": "string", "pattern": "^v\\d+$"}, "v12"),
        ({"type": "string", "pattern": "([unclosed"}, "anything"),
        ({"type": "string", "format": "email"}, "a@b.org"),
        ({"type": "string", "format": "uri"}, "https://b.org/x"),
        ({"type": "string", "format": "date"}, "2026-11-15"),
        ({"type": "string", "format": "date-time"}, "2026-11-15T12:00:00Z"),
        ({"type": "string", "format": "of-the-future"}, "x"),
        (CHOICES, "red"),
        (TITLED, "g"),
        ({"type": "integer", "minimum": 0, "maximum": 9}, 9),
        ({"type": "integer"}, 3.0),
        ({"type": "number", "minimum": 0.5}, 0.5),
        ({"type": "boolean"}, False),
        (SEVERAL, ["a", "c"]),
        (SEVERAL_TITLED, ["a"]),
        ({"type": "_colour"}, {"r": 1}),
        ({}, 1),
    ],
)
async def test_what_is_asked_for_is_taken(field: Json, value: Any) -> None:
    assert await find_problem(form(field), {"f": value}) == ""


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ({"type": "string"}, 1, "must be text"),
        ({"type": "string", "minLength": 3}, "ab", "must have at least 3 characters"),
        ({"type": "string", "maxLength": 1}, "ab", "must have at most 1 characters"),
        ({"type": "string", "pattern": "^v\\d+$"}, "12", "must match `^v\\d+$`"),
        ({"type": "string", "format": "email"}, "a at b", "must be an e-mail address"),
        ({"type": "string", "format": "uri"}, "b.org", "must be a URI"),
        ({"type": "string", "format": "date"}, "15.11.", "must be a date, such as 2026-11-15"),
        (
            {"type": "string", "format": "date-time"},
            "2026-11-15",
            "must be a date and time, such as 2026-11-15T12:00:00Z",
        ),
        (CHOICES, "blue", "must be one of: red, green"),
        (TITLED, "Red", "must be one of: r, g"),
        ({"type": "integer"}, 1.5, "must be a whole number"),
        ({"type": "integer"}, True, "must be a number"),
        ({"type": "integer"}, "1", "must be a number"),
        ({"type": "integer", "minimum": 18}, 17, "must be at least 18"),
        ({"type": "number", "maximum": 0.5}, 0.6, "must be at most 0.5"),
        ({"type": "boolean"}, 1, "must be true or false"),
        (SEVERAL, "a", "must be a list"),
        (SEVERAL, ["a", "d"], "may only hold: a, b, c"),
        (SEVERAL, [], "must have at least 1 entries"),
        (SEVERAL, ["a", "b", "c"], "must have at most 2 entries"),
        (SEVERAL_TITLED, ["b"], "may only hold: a"),
    ],
)
async def test_what_is_not_is_said_in_words(field: Json, value: Any, said: str) -> None:
    assert await why(field, value) == said


async def test_a_field_is_called_by_its_title() -> None:
    field: Json = {"type": "boolean", "title": "Go on"}
    assert await find_problem(form(field, "f"), {}) == "This is not what is asked for: Go on is required."


async def test_all_problems_are_told_up_to_a_number() -> None:
    many = 8
    asked: Json = {"properties": {f"f{n}": {"type": "boolean"} for n in range(many)}}
    told = await find_problem(asked, {f"f{n}": "x" for n in range(many)})
    assert told.count("must be true or false") == 5
    assert told.endswith("; and 3 more.")


async def test_what_was_not_asked_for_is_refused() -> None:
    told = await find_problem(form({"type": "string"}), {"g": "x"})
    assert told == "This is not what is asked for: `g` is not asked for."


async def test_a_catastrophic_pattern_is_compared_within_the_time() -> None:
    with anyio.fail_after(BOUND):
        told = await find_problem(form({"type": "string", "pattern": "(a+)+$"}), {"f": "a" * (1 << 20) + "!"})
    assert told == "This is not what is asked for: `f` must match `(a+)+$`."


async def test_a_pattern_that_cannot_be_used_asks_for_nothing() -> None:
    assert await find_problem(form({"type": "string", "pattern": "^(?=a)"}), {"f": "b"}) == ""


async def test_a_comparison_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_form, "SECONDS", 0.001)
    field: Json = {"type": "string", "pattern": "[ab]*a[ab]{400}c"}
    letters = random.Random(1)
    value = "c".join("".join(letters.choices("ab", k=390)) for _ in range(3000))  # takes a second
    assert "takes too long" in await find_problem(form(field), {"f": value})


def test_a_field_that_no_thread_compared_in_time_is_no_match() -> None:
    past = time.monotonic()
    assert agent_form.match_fields([("f", "b", "a")], past) is None


@pytest.mark.parametrize("odd", [{}, {"properties": 7}, {"properties": {"f": "x"}, "required": "f"}])
async def test_a_form_that_makes_no_sense_harms_nobody(odd: Json) -> None:
    assert form_defaults(odd) == {}
    assert await find_problem(odd, {}) == ""


def test_the_defaults_are_those_that_are_said() -> None:
    asked: Json = {"properties": {"a": {"default": False}, "b": {"default": None}, "c": {"type": "string"}}}
    assert form_defaults(asked) == {"a": False}


async def test_numbers_that_no_float_holds_are_compared_and_told_all_the_same() -> None:
    large = 10**400
    form: Json = {"properties": {"a": {"type": "integer", "minimum": large}}}
    assert "at least 1000" in await find_problem(form, {"a": 1})
    assert await find_problem(form, {"a": large}) == ""
