"""Actors as text: every form that journals hold reads as its kind, and is written back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.store.actor import (
    CLIENT,
    HANDRAIL,
    NOBODY,
    OPERATION,
    PERSON,
    Actor,
    actor_from_text,
    agent_actor,
    approval_actor,
    person_on,
    rule_actor,
    tool_actor,
)

FORMS = [
    ("a person", PERSON),
    ("a person on the page", person_on("page")),
    ("a person on the command line", person_on("command line")),
    ("a person in a window of their own", Actor("person", "in a window of their own")),
    ("rule r0123456789", rule_actor("r0123456789")),
    ("rule own record", rule_actor("own record")),
    ("approval a0123456789", approval_actor("a0123456789")),
    ("client", CLIENT),
    ("operation", OPERATION),
    ("handrail", HANDRAIL),
    ("nobody", NOBODY),
    ("agent claude-code", agent_actor("claude-code")),
    ("execute_command", tool_actor("execute_command")),
]
UNKNOWN = [
    "",
    " ",
    "ann",
    "a personage",
    "a person ",
    "rule",
    "rule ",
    "Rule r1",
    "clients",
    "agent",
    "approval ",
]


@pytest.mark.parametrize(("text", "actor"), FORMS)
def test_every_known_form_reads_as_its_actor_and_is_written_back(text: str, actor: Actor) -> None:
    assert actor_from_text(text) == actor
    assert str(actor) == f"{actor}" == text


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_text_of_no_known_form_keeps_its_text(text: str) -> None:
    actor = actor_from_text(text)
    assert (actor.kind, str(actor)) == ("named", text)
    assert not actor.is_person
    assert actor.rule is None


def test_only_a_rule_has_a_rules_id_and_only_a_person_is_one() -> None:
    assert {str(actor) for _, actor in FORMS if actor.is_person} == {
        text for text, _ in FORMS if text.startswith("a person")
    }
    assert [actor.rule for _, actor in FORMS if actor.rule is not None] == ["r0123456789", "own record"]


@given(
    st.one_of(
        st.text(),
        st.tuples(st.sampled_from([text for text, _ in FORMS] + UNKNOWN), st.text(max_size=3)).map("".join),
    )
)
def test_any_text_survives_the_round_trip(text: str) -> None:
    actor = actor_from_text(text)
    assert str(actor) == text
    assert actor_from_text(str(actor)) == actor
