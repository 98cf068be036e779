"""Input as a client sent it: taken, or answered with a sentence that says what to mend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, JsonValue
from tests.support.sample_tools import Echo, ToyInput

from handrail.gate.draft import DEEPEST, LARGEST, MOST_PROBLEMS, ParsedCall, cut_name, find_excess, parse
from handrail.store.events import CallOpened, decode, encode
from handrail.store.values import Caller, Json

TOOLBOX = {"echo": Echo()}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8) | st.sampled_from(["word", "count"]), values, max_size=4)


def test_good_input_becomes_what_the_tool_takes() -> None:
    parsed = parse(TOOLBOX, "echo", {"word": "hi", "count": 2})
    assert isinstance(parsed, ParsedCall)
    assert parsed.input == ToyInput(word="hi", count=2)


def test_an_unknown_tool_is_told_which_ones_there_are() -> None:
    assert parse(TOOLBOX, "ehco", {}) == "There is no tool named 'ehco'. Use one of: echo."


def test_every_problem_is_named_with_its_field() -> None:
    sentence = parse(TOOLBOX, "echo", {"word": 5, "count": [], "colour": "red"})
    assert isinstance(sentence, str)
    assert sentence.startswith("echo cannot take this input: ")
    assert "`word`: input should be a valid string" in sentence
    assert "`count`: input should be a valid integer" in sentence
    assert "`colour` is not an input of this tool" in sentence
    assert sentence.endswith("Nothing was done; send it again, corrected.")


@pytest.mark.parametrize("name", ["description", "explanation", "reason", "toolSummary"])
def test_a_models_remark_about_its_call_is_no_mistake(name: str) -> None:
    parsed = parse(TOOLBOX, "echo", {"word": "hi", name: "Says hi"})
    assert isinstance(parsed, ParsedCall)
    assert parsed.input == ToyInput(word="hi")


class TitledInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str


class Titled(Echo):
    """Has an input of its own by the name of a remark."""

    input = TitledInput


def test_a_tools_own_input_is_no_remark() -> None:
    parsed = parse({"titled": Titled()}, "titled", {"title": "Apples", "reason": "why not"})
    assert isinstance(parsed, ParsedCall)
    assert parsed.input.model_dump() == {"title": "Apples"}


@pytest.mark.parametrize(("name", "meant"), [("wrod", "word"), ("Count", "count"), ("patiense", "patience")])
def test_a_near_miss_is_refused_with_the_name_that_was_meant(name: str, meant: str) -> None:
    sentence = parse(TOOLBOX, "echo", {name: "x"})
    assert isinstance(sentence, str)
    assert f"`{name}` is not an input of this tool (did you mean `{meant}`?)" in sentence


class CommandInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    background: bool = False
    timeout_seconds: float = 1


class Command(Echo):
    """Has the inputs of a command."""

    input = CommandInput


@pytest.mark.parametrize(
    ("name", "meant"), [("run_in_background", "background"), ("timeout", "timeout_seconds")]
)
def test_the_name_that_other_tools_give_an_input_is_recognized_and_not_taken(name: str, meant: str) -> None:
    sentence = parse({"echo": Command()}, "echo", {name: 1})
    assert isinstance(sentence, str)
    assert f"(did you mean `{meant}`?)" in sentence
    assert "It takes `background`, `timeout_seconds`." in sentence


def test_a_flood_of_problems_is_cut_short() -> None:
    sentence = parse(TOOLBOX, "echo", {f"field{number}": number for number in range(1000)})
    assert isinstance(sentence, str)
    assert f"and {1000 - MOST_PROBLEMS} more" in sentence
    assert len(sentence) < 1000


def test_values_are_not_told_back() -> None:
    sentence = parse(TOOLBOX, "echo", {"count": "my password"})
    assert isinstance(sentence, str)
    assert "my password" not in sentence


@given(objects)
def test_any_input_is_taken_or_answered_with_a_sentence(input: Json) -> None:
    parsed = parse(TOOLBOX, "echo", input)
    assert isinstance(parsed, ParsedCall) or parsed.endswith("corrected.")


@given(st.text())
def test_any_name_is_found_or_answered_with_a_sentence(name: str) -> None:
    parsed = parse(TOOLBOX, name, {})
    assert isinstance(parsed, ParsedCall) == (name == "echo")


def nested(levels: int) -> Json:
    found: Json = {}
    for _ in range(levels):
        found = {"a": [found]}
    return found


def test_input_may_be_as_deep_as_the_journal_can_read_and_no_deeper() -> None:
    deepest = nested(DEEPEST // 2 - 1)
    assert find_excess(deepest) is None
    who = Caller(door="http", client="c", key="k", workspace=None)
    event, payload = encode(CallOpened(call="c1", tool="t", title="t", input=deepest, caller=who))
    assert decode(payload) == event
    sentence = find_excess(nested(DEEPEST))
    assert sentence is not None
    assert "nested deeper than 64 levels" in sentence


def test_input_may_be_large_but_not_huge() -> None:
    assert find_excess({"content": "x" * (LARGEST - 100)}) is None
    many: list[JsonValue] = [0] * LARGEST
    huge_ones: list[Json] = [{"content": "x" * LARGEST}, {"x" * LARGEST: 1}, {"list": many}]
    for huge in huge_ones:
        sentence = find_excess(huge)
        assert sentence is not None
        assert "larger than" in sentence


@given(objects)
def test_ordinary_input_is_never_too_much(input: Json) -> None:
    assert find_excess(input) is None


def test_a_long_name_is_cut_and_a_short_one_is_not() -> None:
    assert cut_name("execute_command") == "execute_command"
    assert cut_name("x" * 5000) == "x" * 100 + "…"
