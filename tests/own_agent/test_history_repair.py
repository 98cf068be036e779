"""What a crash left, made valid; valid conversations are left as they are."""

from pydantic_ai.messages import ModelRequest, TextPart, ToolReturnPart, UserPromptPart
from tests.support.loop_fakes import answer, call, check_messages

from handrail.own_agent.history import is_note, note, repair_messages


def test_a_call_whose_result_a_crash_took_is_told_to_be_interrupted() -> None:
    messages = repair_messages([ModelRequest([UserPromptPart("Look")]), answer(call("look", "1"))])
    check_messages(messages)
    (result,) = messages[-1].parts
    assert isinstance(result, ToolReturnPart)
    assert result.outcome == "interrupted"


def test_a_result_without_its_call_is_dropped() -> None:
    messages = repair_messages(
        [ModelRequest([UserPromptPart("Look"), ToolReturnPart("look", "A tree", "1")])]
    )
    check_messages(messages)
    assert len(messages[0].parts) == 1


def test_a_result_that_comes_after_the_next_prompt_still_goes_to_its_call() -> None:
    messages = repair_messages(
        [
            ModelRequest([UserPromptPart("Look")]),
            answer(call("look", "1")),
            ModelRequest([UserPromptPart("Well?")]),
            ModelRequest([ToolReturnPart("look", "A tree", "1")]),
        ]
    )
    check_messages(messages)
    assert [part.part_kind for part in messages[-1].parts] == ["tool-return", "user-prompt"]
    assert "A tree" in str(messages)


def test_answers_in_a_row_have_a_note_between_them() -> None:
    messages = repair_messages([answer("One"), answer("Two")])
    check_messages(messages)
    assert [message.kind for message in messages] == ["request", "response", "request", "response"]


def test_a_valid_conversation_stays_as_it_is() -> None:
    valid = [
        ModelRequest([UserPromptPart("Look")]),
        answer("Yes", call("look", "1")),
        ModelRequest([ToolReturnPart("look", "A tree", "1"), UserPromptPart("Well?")]),
        answer("A tree."),
    ]
    assert repair_messages(valid) == valid


def test_a_note_is_known_from_what_a_person_wrote() -> None:
    assert is_note(note("Cut off."))
    assert not is_note(UserPromptPart("[Cut off.]"))
    assert not is_note(UserPromptPart(["Cut", "off"]))
    assert note("Cut off.").content != TextPart("Cut off.")
