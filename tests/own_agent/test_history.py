"""A conversation's facts, and that its messages are valid at every moment."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from tests.support.loop_fakes import answer, call, check_messages

from handrail.own_agent.history import History, is_note, malformed
from handrail.own_agent.tools.agent_tool import Result


def test_prompts_without_an_answer_are_one_request() -> None:
    history = History()
    history.add_prompt("One")
    history.add_prompt("Two")
    (request,) = history.messages
    assert [part.content for part in request.parts if isinstance(part, UserPromptPart)] == ["One", "Two"]


def test_a_call_is_interrupted_until_it_has_a_result() -> None:
    history = History()
    history.add_prompt("Look")
    one, two = history.add_response(answer(call("look", "1"), call("look", "2")))
    history.add_result(two, Result(text="A tree"))
    check_messages(history.messages)
    first, second = history.messages[-1].parts
    assert isinstance(first, ToolReturnPart)
    assert isinstance(second, ToolReturnPart)
    assert (first.outcome, second.outcome) == ("interrupted", "success")
    history.add_result(one, Result(text="A bush"))
    assert [str(part.content) for part in history.messages[-1].parts if isinstance(part, ToolReturnPart)] == [
        "A bush",
        "A tree",
    ]


def test_a_result_counts_once() -> None:
    history = History()
    history.add_prompt("Look")
    (one,) = history.add_response(answer(call("look", "1")))
    history.add_result(one, Result(text="First"))
    history.add_result(one, Result(text="Second"))
    check_messages(history.messages)
    assert "First" in str(history.messages)
    assert "Second" not in str(history.messages)


def test_calls_that_are_named_alike_get_names_of_their_own() -> None:
    history = History()
    history.add_prompt("Look")
    ids = [
        part.tool_call_id
        for _ in range(2)
        for part in history.add_response(
            answer(call("look", "call_0"), call("look", "call_0"), ToolCallPart("look", {}, ""))
        )
    ]
    check_messages(history.messages)
    assert ids[0] == "call_0"
    assert len(set(ids)) == 6


def test_names_that_another_provider_would_not_take_are_changed() -> None:
    history = History()
    history.add_prompt("Look")
    (one,) = history.add_response(answer(call("look at", "functions.look:0")))
    history.add_result(one, Result(text="A tree"))
    check_messages(history.messages)
    assert one.tool_name == "look_at"


def test_halves_of_characters_are_put_together_or_left_out() -> None:
    history = History()
    history.add_prompt("Smile \udc80")
    (one,) = history.add_response(answer("\ud83d\ude00", call("look")))
    history.add_result(one, Result(text="A \ud83d half"))
    history.break_off("And \ud83d", "the person cancelled it.")
    check_messages(history.messages)
    assert "\N{GRINNING FACE}" in str(history.messages)


def test_a_conversation_beside_another_does_not_name_its_calls_alike() -> None:
    history = History()
    history.add_prompt("Look")
    history.add_response(answer(call("look", "call_0")))
    other = history.beside()
    assert other.facts == []
    (one,) = other.add_response(answer(call("look", "call_0")))
    assert one.tool_call_id != "call_0"


@pytest.mark.parametrize("sent", ['{"path": "a', "[1]", "nonsense", '"text"'])
def test_an_input_that_is_no_object_is_kept_as_one(sent: str) -> None:
    history = History()
    history.add_prompt("Look")
    (one,) = history.add_response(answer(call("look", args=sent)))
    assert malformed(one) == sent
    check_messages(history.messages)


@pytest.mark.parametrize("sent", ["", '{"path": "a"}', "{}"])
def test_an_input_that_is_an_object_is_not_malformed(sent: str) -> None:
    (one,) = History().add_response(answer(call("look", args=sent)))
    assert malformed(one) is None
    assert isinstance(one.args, dict)


@pytest.mark.parametrize("sent", ['{"n": 1e999}', '{"n": [NaN, -Infinity]}', '{"n": "\ud800"}'])
def test_an_input_that_could_not_be_sent_again_is_kept_as_one_that_can(sent: str) -> None:
    history = History()
    history.add_prompt("Count")
    (kept,) = history.add_response(answer(ToolCallPart("count", sent, "1")))
    json.dumps(kept.args, allow_nan=False, ensure_ascii=False).encode()
    check_messages(history.messages)


def test_the_words_of_an_answer_that_broke_off_are_kept_and_marked() -> None:
    history = History()
    history.add_prompt("Tell me")
    history.break_off("Once upon", "the person cancelled it.")
    history.add_prompt("Go on")
    _, told, then = history.messages
    assert isinstance(told, ModelResponse)
    assert (told.parts, told.state) == ([TextPart("Once upon")], "interrupted")
    assert isinstance(then, ModelRequest)
    assert [is_note(part) for part in then.parts] == [True, False]


def test_a_blank_answer_is_none() -> None:
    history = History()
    history.add_prompt("Tell me")
    history.add_response(answer(" \n"))
    history.add_response(answer(ThinkingPart("Hm")))
    history.break_off("  ", "the person cancelled it.")
    history.add_prompt("")
    history.add_prompt(["", "  "])
    assert len(history.messages) == 1
    check_messages(history.messages)


def test_a_result_may_hold_images_and_is_never_blank() -> None:
    history = History()
    history.add_prompt("Look")
    one, two = history.add_response(answer(call("look", "1"), call("look", "2")))
    history.add_result(one, Result(text=""))
    history.add_result(two, Result(text="A cat", images=(BinaryContent(b"png", media_type="image/png"),)))
    check_messages(history.messages)
    assert "(no output)" in str(history.messages)
    assert "image/png" in str(history.messages)


def test_each_fact_is_told_once_and_a_replacement_as_a_whole() -> None:
    told: list[ModelMessage | None] = []
    history = History(on_change=told.append)
    history.add_prompt("Look")
    (one,) = history.add_response(answer(call("look")))
    history.add_result(one, Result(text="A tree"))
    history.break_off("Well", "the person cancelled it.")
    assert told == history.facts
    assert len(told) == 5
    history.replace(history.facts[:1])
    assert told[-1] is None
    assert len(history.facts) == 1


WORDS = st.sampled_from(["", " ", "Word", "Two words"])


def some(text: str, thought: bool, ids: list[int], args: str) -> ModelResponse:
    thoughts = [ThinkingPart("Hm")] if thought else []
    return answer(*thoughts, text, *(call("look", str(each), args) for each in ids))


ANSWERS = st.builds(
    some,
    WORDS,
    st.booleans(),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(["", "{", "{}", '{"a": 1}', "[]"]),
)
DOINGS = st.lists(
    st.one_of(
        st.tuples(st.just("prompt"), WORDS),
        st.tuples(st.just("answer"), ANSWERS),
        st.tuples(st.just("result"), st.integers(0, 9)),
        st.tuples(st.just("break"), WORDS),
    ),
    max_size=12,
)


@given(DOINGS, st.data())
def test_whatever_happens_and_wherever_it_is_torn_the_messages_are_valid(
    doings: list[tuple[str, object]], data: st.DataObject
) -> None:
    history, calls = History(), list[ToolCallPart]()
    for what, value in doings:
        match what, value:
            case "prompt", str(words):
                history.add_prompt(words)
            case "break", str(words):
                history.break_off(words, "it was cancelled.")
            case _, ModelResponse():
                calls += history.add_response(value)
            case _, int(place) if calls:
                history.add_result(calls[place % len(calls)], Result(text="Seen"))
            case _:
                pass
        check_messages(history.messages)
    kept = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(history.facts))
    assert History(kept).messages == history.messages
    torn = [fact for fact in kept if data.draw(st.booleans())]
    check_messages(History(torn).messages)
    check_messages(History(History(torn).messages).messages)
