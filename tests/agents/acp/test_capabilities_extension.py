"""What our own agent is told apart from its environment, and how what it is busy with comes to a desk."""

from handrail.agents.acp.capabilities import GREETING, TOLD, apart, greeting, joined, update_of
from handrail.config import OWN_COMMAND, AgentSection

ENV = {"HOME": "/h", "ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u", "https_proxy": "p"}


def test_keys_are_no_part_of_our_own_agents_environment() -> None:
    own = AgentSection(name="handrail", command=OWN_COMMAND)
    assert apart(own, ENV) == (
        {"HOME": "/h", "https_proxy": "p"},
        {"ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u"},
    )


def test_an_address_that_is_brought_along_gets_no_key_that_was_there_before() -> None:
    standing = {"OPENAI_API_KEY": "ours", "ANTHROPIC_API_KEY": "ours", "HOME": "/h"}
    address = {"OPENAI_BASE_URL": "http://elsewhere"}
    assert joined(standing, address) == {"ANTHROPIC_API_KEY": "ours", "HOME": "/h", **address}
    theirs = {**address, "OPENAI_API_KEY": "theirs"}
    assert joined(standing, theirs) == {"ANTHROPIC_API_KEY": "ours", "HOME": "/h", **theirs}
    assert joined({**standing, **address}, {}) == {**standing, **address}
    assert joined(standing, {"OPENAI_API_KEY": "theirs"})["OPENAI_API_KEY"] == "theirs"


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
