"""What our own agent is told apart from its environment, and how what it is busy with comes to a desk."""

from handrail.agents.program.about import GREETING
from handrail.agents.program.extension import TOLD, apart, greeting, update_of
from handrail.config import OWN_COMMAND, AgentSection

ENV = {"HOME": "/h", "ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u", "https_proxy": "p"}


def test_keys_are_no_part_of_our_own_agents_environment() -> None:
    own = AgentSection(name="handrail", command=OWN_COMMAND)
    assert apart(own, ENV) == (
        {"HOME": "/h", "https_proxy": "p"},
        {"ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u"},
    )


def test_what_a_person_passes_to_another_program_is_in_its_environment() -> None:
    assert apart(AgentSection(name="other", command=("other",)), ENV) == (ENV, {})


def test_the_greeting_holds_keys_only_where_there_are_any() -> None:
    assert greeting({}) == GREETING
    assert greeting({"OPENAI_API_KEY": "k"})["_meta"] == {"handrail": {"keys": {"OPENAI_API_KEY": "k"}}}
    assert "_meta" not in GREETING


def test_an_activity_keeps_its_place_among_what_is_said_of_its_session() -> None:
    told = update_of({"sessionId": "s1", "activity": {"id": "a1"}})
    assert told == {"sessionId": "s1", "update": {"sessionUpdate": TOLD, "activity": {"id": "a1"}}}
    assert update_of({}) == {"sessionId": None, "update": {"sessionUpdate": TOLD, "activity": None}}
