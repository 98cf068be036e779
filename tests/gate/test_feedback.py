"""What an agent is told of a person's part in its call."""

import pytest

from handrail.gate.feedback import LONGEST, add_feedback, describe_edit, describe_feedback, join_comments
from handrail.store.values import Comment, Json, Result


@pytest.mark.parametrize(
    ("asked", "ran", "told"),
    [
        ({"a": 1}, {"a": 2}, "`a` is 2 instead of 1"),
        ({"a": 1}, {}, "`a` was left out"),
        ({}, {"a": None}, "`a` was added: null"),
        ({"a": 1}, {"a": True}, "`a` is true instead of 1"),
        ({"a": "é", "b": 1}, {"a": "ü", "b": 1}, '`a` is "ü" instead of "é"'),
        ({"a": "x", "b": 660.0}, {"a": "y", "b": 660}, '`a` is "y" instead of "x"'),
        ({"a": [1.0, {"b": 2.5}]}, {"a": [1, {"b": 2}]}, '`a` is [1, {"b": 2}] instead of [1.0, {"b": 2.5}]'),
        ({"input": {"a": 1, "b": 2}}, {"input": {"a": 3, "b": 2}}, "`a` is 3 instead of 1"),
        ({"a": [1], "b": 2}, {"b": 3, "c": 4}, "`a` was left out; `b` is 3 instead of 2; `c` was added: 4"),
    ],
)
def test_only_what_differs_is_told(asked: Json, ran: Json, told: str) -> None:
    assert describe_edit(asked, ran) == f"A person changed this call before allowing it: {told}."


def test_a_long_value_is_cut_in_the_sentence_and_whole_in_the_data() -> None:
    result = add_feedback(Result(text="done", data={"x": 1}), {"a": "s"}, {"a": "t" * 10_000}, "")
    assert result is not None
    sentence, _, rest = result.text.partition("\n\n")
    assert rest == "done"
    assert len(sentence) < LONGEST + 120
    assert result.data == {"x": 1, "edited": {"input": {"a": "t" * 10_000}, "asked": {"a": "s"}}}


def test_a_result_that_nobody_had_a_part_in_is_left_alone() -> None:
    result = Result(text="done", data={})
    assert add_feedback(result, {}, None, "") is result
    assert add_feedback(None, {}, None, "") is None


def test_a_call_without_a_result_tells_of_its_change_all_the_same() -> None:
    result = add_feedback(None, {"a": 1}, {"a": 2}, "mind the gap")
    assert result is not None
    assert result.text == (
        "A person changed this call before allowing it: `a` is 2 instead of 1.\n"
        "The person who allowed it says: mind the gap"
    )
    assert result.data["person_says"] == "mind the gap"


def test_what_will_be_told_is_said_before() -> None:
    assert describe_feedback(describe_edit({"a": 1}, {"a": 1}), "") == "Nothing: it runs as it was asked."
    assert describe_feedback("", "kept 2 of 3 hunks") == "kept 2 of 3 hunks"
    assert describe_feedback(describe_edit({"a": 1}, {"a": 2}), "kept 1").splitlines() == [
        describe_edit({"a": 1}, {"a": 2}),
        "kept 1",
    ]


def test_a_reason_and_comments_stand_one_below_the_other() -> None:
    comments = (Comment(line=2, text="why?"), Comment(line=5, text="no"))
    assert join_comments("Not so", comments) == "Not so\nLine 2: why?\nLine 5: no"
    assert join_comments("", comments[:1]) == "Line 2: why?"
    assert join_comments("", ()) == ""
